# The steps that tools/check --all adds; sourced by it, uses its step and build_in.
# A step that cannot run fails by name: what was promised and not run must not look like a success.

gaps=(--gaps tests/cases/gaps_opencl.txt)

case_tests() { build/release/tests/case_tests "$@"; }

# at_once "COMMAND ARGUMENT.."..: runs the commands at the same time and fails when one of them
# does. The output of each stays together, and the failures come last, where `step` shows them.
# shellcheck disable=SC2086 # a line's words are the command and its arguments
at_once() {
  local line i bad=() running=() output
  output=$(mktemp -d "$logs/at_once.XXXXXX") || return 1
  for line; do
    $line >"$output/${#running[@]}" 2>&1 &
    running+=($!)
  done
  for i in "${!running[@]}"; do
    if wait "${running[i]}"; then cat "$output/$i"; else bad+=("$output/$i"); fi
  done
  ((${#bad[@]} == 0)) || cat "${bad[@]}"
  rm -rf "$output"
  ((${#bad[@]} == 0))
}

# The fast paths choose instructions when they run. All other tests use the best that this processor
# has; these use lesser ones.
simd_cases() {
  local level
  for level in avx2 sse4 baseline; do
    case_tests --device cpu --simd "$level" tests/cases/*.case || return 1
  done
  # Integer products have more levels than the others.
  local integers=(tests/cases/{convinteger,matmulinteger,requantize}.case)
  case_tests --device cpu --simd avxvnni "${integers[@]}" || return 1
  if grep -q avx512f /proc/cpuinfo; then
    case_tests --device cpu --simd avx512 "${integers[@]}" || return 1
  fi
  # Asked for by name, since Intel's processors do not choose it by themselves.
  if grep -q avx512_bf16 /proc/cpuinfo; then
    case_tests --device cpu --simd avx512bf16 tests/cases/{conv,matmul}.case || return 1
  fi
}

# intel_cases SHAPE LIBRARY
intel_cases() {
  ONCILLA_CL_SHAPE=$1 OCL_ICD_VENDORS=$2 case_tests --device opencl "${gaps[@]}" \
    tests/cases/*.case || return 1
  ONCILLA_CL_WINOGRAD=4 ONCILLA_CL_SHAPE=$1 OCL_ICD_VENDORS=$2 case_tests --device opencl \
    --partial "${gaps[@]}" tests/cases/conv.case
}

# Oclgrind writes what it finds to its log and still succeeds. It is slow, so it gets small cases
# only.
on_oclgrind() {
  OCL_ICD_VENDORS=/usr/lib/oclgrind/liboclgrind-rt-icd.so OCLGRIND_CHECK_API=1 OCLGRIND_DATA_RACES=1 \
    case_tests --device opencl --partial --small 200 --timeout 300 "${gaps[@]}" \
    --gaps tests/cases/gaps_oclgrind.txt "$@"
}
oclgrind_cases() {
  local log=$logs/oclgrind_$1.txt
  rm -f "$log"
  local -x OCLGRIND_LOG=$log ONCILLA_CL_SHAPE=$1
  on_oclgrind tests/cases/*.case && ONCILLA_CL_WINOGRAD=4 on_oclgrind tests/cases/conv.case || return 1
  [[ $1 != gpu ]] || ONCILLA_CL_MATRIX=written on_oclgrind tests/cases/{conv,matmul}{,integer}.case tests/cases/attention.case || return 1
  [[ ! -s $log ]] || { head -n 50 "$log" && false; }
}

# Mesa's OpenCL on the processor, a driver unlike the others. The one of Debian 12 has faults
# (backends/opencl/runtime/quirks.cc), so it gets a choice of small cases.
rusticl_cases() {
  OCL_ICD_VENDORS=rusticl.icd RUSTICL_ENABLE=llvmpipe case_tests --device opencl --partial \
    --small 1000 --timeout 300 "${gaps[@]}" --gaps tests/cases/gaps_rusticl.txt tests/cases/*.case
}

# offline_compiles PTXAS: every second program that the cases ask for goes to one vendor's compiler
# (neighbours are much alike); tools/nightly gives all programs to all vendors.
offline_compiles() {
  local programs=build/check/programs all half=() i
  rm -rf "$programs" && mkdir -p "$programs" &&
    build/release/tests/kernel_variants "$programs" tests/cases/*.case || return 1
  all=("$programs"/*.cl)
  for ((i = 0; i < ${#all[@]}; i += 2)); do half+=("${all[i]}"); done
  ONCILLA_PTXAS=$1 tools/compile_kernels --some --report "$logs/registers.txt" "${half[@]}"
}

# kernel_figures PTXAS NVDISASM: compares a few nets on a few devices with tests/golden/kernels;
# tools/nightly compares all.
kernel_figures() {
  ONCILLA_PTXAS=$1 ONCILLA_NVDISASM=$2 tools/kernel_report --check --short
}

# Each test of ApiRuns runs a real net several times; two of them have threads of their own. tools/nightly runs all.
threads_under_tsan() {
  build/tsan/tests/thread_tests --gtest_filter='-*ApiRuns.*' &&
    build/tsan/tests/thread_tests --gtest_filter='*ApiRuns.RunOnThreadsOfTheSession/*:*ApiRuns.AreFedAhead/*'
}

# Suppresses the known leaks of third parties, and nothing else.
sanitized() {
  LSAN_OPTIONS=suppressions=$root/tests/leaks.txt:print_suppressions=0 \
    UBSAN_OPTIONS=print_stacktrace=1 OCL_ICD_VENDORS=pocl.icd "$@"
}

# Divides the unit tests into as many shares as there are processors, each in a process of its own.
unit_share() {
  GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$1 sanitized build/asan/tests/unit_tests
}
sanitized_units() {
  local shares
  mapfile -t shares < <(seq 0 $((jobs - 1)))
  at_once "${shares[@]/#/unit_share }"
}

# The sanitizers see our own code only; on PoCL that is the code up to the kernels.
sanitized_cases_on() {
  sanitized build/asan/tests/case_tests --timeout 300 --device "$@" tests/cases/*.case
}
sanitized_cases_on_cpu() {
  sanitized_cases_on cpu && sanitized_cases_on cpu:plain --offset &&
    sanitized_cases_on cpu --mutate 1 --each 1 --partial
}
sanitized_cases() {
  at_once sanitized_cases_on_cpu "sanitized_cases_on opencl --offset ${gaps[*]}"
}

# ONNX's own models: constants at odd addresses in mapped files, and whatever else they contain. The
# number of those that pass is counted without names, because some round differently without
# optimisation. Then all that is recorded here.
sanitized_onnx() {
  local data=/usr/share/libonnx-testdata/data
  sanitized build/asan/tests/onnx_tests --device cpu --at-least 905 "$data/node" &&
    sanitized build/asan/tests/onnx_tests --device cpu --at-least 135 "$data/simple" \
      "$data/pytorch-converted" "$data/pytorch-operator" &&
    sanitized build/asan/tests/onnx_tests --device cpu tests/conformance/recorded
}

# fuzz SECONDS FORMAT: starts from generated inputs with a fixed seed, so that a run repeats as far
# as time allows; tools/nightly takes another seed each time.
fuzz() {
  local work=$root/build/check/fuzz/$2
  mkdir -p "$work/found" && cd "$work" || return 1
  "$root/build/asan/tests/fuzz_$2" -seed=1 -max_total_time="$1" -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -max_len=65536 -print_final_stats=1 -artifact_prefix="$work/" \
    "$work/found" "$root/build/check/fuzz/seeds/$2"
}

# Runs as many at once as there are processors.
fuzz_all() {
  local i failed=0 all
  rm -rf build/check/fuzz && tests/fuzz/make_seeds.py build/check/fuzz/seeds \
    build/release/oncilla || return 1
  all=(checkpoint container graphdef onnx text tflite saved_model)
  all=("${all[@]/#/fuzz $1 }")
  for ((i = 0; i < ${#all[@]}; i += jobs)); do
    at_once "${all[@]:i:jobs}" || failed=1
  done
  return "$failed"
}

# The Python package in a virtual environment; its engine is made of the release build's objects.
python_module() {
  local venv=$root/build/python-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check 'nanobind>=3.0' numpy ml_dtypes pytest mypy onnx </dev/null || return 1
  build_in release release oncilla_python -DONCILLA_PYTHON=ON -DPython_EXECUTABLE="$venv/bin/python"
}
python_package() {
  python_module && PYTHONPATH=build/release/python OCL_ICD_VENDORS=pocl.icd \
    pytests build/python-venv/bin/python python/tests
}

# A cluster of Ray on this machine; tools/nightly runs the slow tests.
ray_cluster() {
  local venv=$root/build/ray-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check 'ray[serve,data]==2.60.0' numpy onnx pytest </dev/null || return 1
  python_module && PYTHONPATH=$root/build/release/python OCL_ICD_VENDORS=pocl.icd \
    pytests "$venv/bin/python" -p no:warnings -m "not slow" integrations/ray/tests
}

# Triton's backend in the tritonserver that a package on PyPI contains.
triton_backend() {
  local venv=$root/build/triton-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check nvidia-pytriton==0.7.0 'tritonclient[http,grpc]==2.73.0' numpy onnx psutil \
    pillow pytest </dev/null || return 1
  build_in release release oncilla_triton -DONCILLA_TRITON=ON &&
    ONCILLA_TRITON_BACKENDS=$root/build/release/triton/backends OCL_ICD_VENDORS=pocl.icd \
      pytests "$venv/bin/python" integrations/triton/tests
}

# ONNX Runtime's provider in PyPI's onnxruntime, on the CPU device and on PoCL.
onnxruntime_provider() {
  local venv=$root/build/onnxruntime-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.31.1 onnx numpy pytest </dev/null || return 1
  build_in release release "oncilla_ort_ep fault_layer" -DONCILLA_ONNXRUNTIME=ON &&
    ONCILLA_ORT_EP=$root/build/release/onnxruntime/liboncilla_ort_ep.so OCL_ICD_VENDORS=pocl.icd \
      ONCILLA_FAULT_LAYER=$root/build/release/tests/libfault_layer.so \
      pytests "$venv/bin/python" integrations/onnxruntime/tests
}

# The server, called by public clients in a virtual environment.
server_tests() {
  local venv=$root/build/server-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check 'tritonclient[http,grpc]==2.73.0' onnx numpy psutil pytest \
    </dev/null || return 1
  build_in release release "oncilla_server oncilla_program" -DONCILLA_SERVER=ON &&
    ONCILLA_SERVER=build/release/oncilla_server pytests "$venv/bin/python" server/tests
}

# Manifests for Kubernetes and KServe: checked by schema, and against the server's flags.
kubernetes_manifests() {
  local venv=$root/build/server-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check kubernetes-validate==1.37.0 jsonschema pyyaml pytest </dev/null || return 1
  build_in release release oncilla_server -DONCILLA_SERVER=ON &&
    ONCILLA_SERVER=build/release/oncilla_server pytests "$venv/bin/python" integrations/kserve/tests
}

# try_fetch VARIABLE FUNCTION: a download that fails counts as a failure with its name.
try_fetch() {
  local -n into=$1
  into=$("$2" 2>"$logs/$2.log") && return 0
  step "$2" cat_and_fail "$logs/$2.log"
}
cat_and_fail() { cat "$1" && false; }

# Only what the sanitizers and fuzzers run, since compiling it with clang takes longer than
# everything else here.
asan_targets="tflite_tests case_tests onnx_tests fuzz_checkpoint fuzz_container fuzz_graphdef fuzz_onnx \
  fuzz_text fuzz_tflite fuzz_saved_model"

check_all() {
  local intel ptxas nvdisasm
  [[ -x build/release/tests/case_tests ]] || return
  step "cases with lesser SIMD" simd_cases
  if fits "Python package" 5; then step "Python package" python_package; fi
  if fits "ONNX Runtime's provider" 3; then step "ONNX Runtime's provider" onnxruntime_provider; fi
  if fits "server" 3; then
    step "server" server_tests
    step "manifests for Kubernetes" kubernetes_manifests
  fi
  if fits "Triton's backend" 2; then step "Triton's backend" triton_backend; fi
  if fits "Ray" 2; then step "Ray" ray_cluster; fi
  if fits "cases on Intel's OpenCL" 4 && try_fetch intel fetch_intel_opencl; then
    step "cases on Intel's OpenCL" at_once "intel_cases gpu $intel" "intel_cases cpu $intel"
  fi
  step "cases on Oclgrind" at_once "oclgrind_cases gpu" "oclgrind_cases cpu"
  step "cases on rusticl" rusticl_cases
  if fits "tsan" 15 &&
    step "build (tsan)" build_in tsan tsan thread_tests -DONCILLA_OPENCL=OFF; then
    step "threads (tsan)" threads_under_tsan
  fi
  if fits "kernels compiled offline" 10 && try_fetch ptxas find_ptxas; then
    step "kernels compiled offline" offline_compiles "$ptxas"
  fi
  if fits "kernels' figures" 3 && try_fetch ptxas find_ptxas && try_fetch nvdisasm find_nvdisasm; then
    step "kernels' figures" kernel_figures "$ptxas" "$nvdisasm"
  fi
  # The unit tests come last: their build and their run take as long as many of the others.
  if fits "asan, ubsan and fuzzers" 24 &&
    step "build (clang 14, asan, ubsan)" build_in asan asan "$asan_targets"; then
    step "TFLite (asan, ubsan)" sanitized build/asan/tests/tflite_tests
    step "cases (asan, ubsan)" sanitized_cases
    step "ONNX's tests (asan, ubsan)" sanitized_onnx
    step "fuzzers, twenty seconds each" fuzz_all 20
    if fits "unit tests (asan, ubsan)" 21 &&
      step "build of unit tests (asan, ubsan)" build_in asan asan unit_tests; then
      step "unit tests (asan, ubsan)" sanitized_units
    fi
  fi
}
