"""What is read out of XLA's program."""

from measure.subject import hlo
from tests.synthetic import HOSTILE

HLO = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[5]{0})->f32[5]{0}}

FileNames
1 "/home/somebody/x.py"

%fused_computation (param_0: f32[5]) -> f32[5] {
  %param_0 = f32[5]{0} parameter(0)
  %c = f32[] constant(2), metadata={op_type="Mul" source_file="/home/somebody/x.py" source_line=7}
  %b = f32[5]{0} broadcast(%c), dimensions={}
  %m = f32[5]{0} multiply(%b, %param_0), metadata={op_type="Mul" op_name="mul" source_file="/home/x.py" source_line=7}
  ROOT %a = f32[5]{0} add(%m, %param_0)
}

%filled (param_1: f32[]) -> f32[5] {
  %param_1 = f32[] parameter(0)
  ROOT %w = f32[5]{0} broadcast(%param_1), dimensions={}
}

%compare (x: f32[], y: f32[]) -> pred[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %lt = pred[] compare(%x, %y), direction=LT
}

%body (arg: (s32[], f32[5])) -> (s32[], f32[5]) {
  %arg = (s32[], f32[5]{0}) parameter(0)
  %g = f32[5]{0} get-tuple-element(%arg), index=1
  ROOT %t = (s32[], /*index=1*/f32[5]{0}) tuple(%arg, %g)
}

ENTRY %main (arg0: f32[5]) -> f32[5] {
  %arg0 = f32[5]{0} parameter(0)
  %add_fusion = f32[5]{0} fusion(%arg0), kind=kLoop, calls=%fused_computation
  %fill = f32[5]{0} fusion(%arg0), kind=kLoop, calls=%filled
  %s = f32[5]{0} sort(%add_fusion), dimensions={0}, to_apply=%compare
  %k = (f32[2]{0}, s32[2]{0}) custom-call(%s), custom_call_target="TopK", called_computations={%compare}
  ROOT %w.1 = (s32[], /*index=1*/f32[5]{0}) while(%k), condition=%compare, body=%body
}
"""


def test_a_program_is_its_fusions_what_is_outside_of_them_and_its_loops():
    found = hlo.parse(HLO)
    assert found.fusions == (hlo.Fusion("add_fusion", ("multiply", "add")), hlo.Fusion("fill", ("broadcast",)))
    assert found.others == ("sort", "custom-call") and found.loops == 1 and found.inputs == 1
    assert hlo.parse("") == hlo.Program((), (), 0) == hlo.parse(HOSTILE)


def test_no_path_of_a_machine_is_in_a_program():
    clean = hlo.without_paths(HLO)
    assert "/home" not in clean and 'op_name="mul"' in clean
    assert hlo.parse(clean) == hlo.parse(HLO)
    assert "metadata" not in hlo.comparable(clean)
