#!/usr/bin/env python3
"""The case runner must blame a case that dies or hangs and run the rest, detect crashes outside
cases, and refuse lists of known gaps that are not accurate:
    tests/case_runner/runner_test.py CASE_TESTS"""

import pathlib
import subprocess
import sys
import tempfile

CASES = """# three that pass
Relu
in f32[2] -1 2
out f32[2] 0 2

Abs
in f32[2] -1 2
out f32[2] 1 2

Neg
in f32[2] -1 2
out f32[2] 1 -2
"""

failures = []


def run(program, folder, *arguments, gaps=None, cases=CASES):
    (folder / "x.case").write_text(cases)
    command = [program, "--device", "cpu", *arguments]
    if gaps is not None:
        (folder / "gaps.txt").write_text(gaps)
        command += ["--gaps", str(folder / "gaps.txt")]
    done = subprocess.run([*command, str(folder / "x.case")], capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def expect(what, result, code, *texts):
    missing = [t for t in texts if t not in result[1]]
    if result[0] != code or missing:
        failures.append(what)
        print(f"FAIL {what}: exit code {result[0]}, not {code}; missing {missing} in\n{result[1]}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expect("all pass", run(program, folder), 0, "3 passed, 0 failed")
        for kind, how in (("abort", "died with signal Aborted"), ("exit", "ended with code 7"),
                          ("hang", "no answer within 2 s")):
            expect(f"a case with {kind}", run(program, folder, "--timeout", "2", "--fault",
                                              f"{kind}:Abs"), 1,
                   "x.case:6 Abs", how, "2 passed, 1 failed")
        expect("all die", run(program, folder, "--fault", "abort:x.case:"), 1, "0 passed, 3 failed")
        expect("a crash at the end", run(program, folder, "--fault", "abort:<end>"), 1,
               "the test program after", "died with signal", "3 passed, 1 failed")
        expect("a crash at the start", run(program, folder, "--fault", "exit:<start>"), 1,
               "before its first case", "0 passed, 1 failed")
        wrong = CASES.replace("1 -2", "1 -3")
        expect("a wrong answer", run(program, folder, cases=wrong), 1, "x.case:10 Neg",
               "2 passed, 1 failed")
        expect("a listed fault", run(program, folder, cases=wrong, gaps="wrong Neg\n"), 0,
               "2 passed, 0 failed", "1 listed as wrong")
        expect("a listed fault that is none", run(program, folder, gaps="wrong Neg\n"), 1,
               "'wrong Neg' works now; take the line out")
        expect("a listed gap that is none", run(program, folder, gaps="Neg f32\n"), 1,
               "'Neg f32' is no gap any more; take the line out")
        expect("plain instructions", run(program, folder, "--simd", "baseline"), 0,
               "with baseline: 3 passed")
        expect("no such instructions", run(program, folder, "--simd", "mmx"), 2, "mmx")
        expect("no such device", run(program, folder, "--device", "opencl:99"), 2, "no device")
    print(f"case runner: {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
