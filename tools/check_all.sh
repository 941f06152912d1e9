# The steps that tools/check --all adds; sourced by it, uses its step and build_in.
# Every step that cannot be had fails by name: what was promised and not run must not look passed.

gaps=(--gaps tests/cases/gaps_opencl.txt)

case_tests() { build/release/tests/case_tests "$@"; }

# The fast paths choose instructions when they run; this processor's best is what all else tested.
simd_cases() {
  local level
  for level in avx2 sse4 baseline; do
    case_tests --device cpu --simd "$level" tests/cases/*.case || return 1
  done
  # Integer products have more kinds than that.
  local integers=(tests/cases/{convinteger,matmulinteger,requantize}.case)
  case_tests --device cpu --simd avxvnni "${integers[@]}" || return 1
  if grep -q avx512f /proc/cpuinfo; then
    case_tests --device cpu --simd avx512 "${integers[@]}" || return 1
  fi
}

# intel_cases SHAPE LIBRARY
intel_cases() {
  ONCILLA_CL_SHAPE=$1 OCL_ICD_VENDORS=$2 case_tests --device opencl "${gaps[@]}" \
    tests/cases/*.case || return 1
  ONCILLA_CL_WINOGRAD=4 ONCILLA_CL_SHAPE=$1 OCL_ICD_VENDORS=$2 case_tests --device opencl \
    --partial "${gaps[@]}" tests/cases/conv.case
}

# Oclgrind says what it finds in its log and succeeds all the same. It is slow: small cases only.
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
  [[ ! -s $log ]] || { head -n 50 "$log" && false; }
}

# Mesa's OpenCL on the processor: a driver unlike the others. Debian 12's has faults of its own
# (backends/opencl/runtime/quirks.cc), so only a choice of small cases.
rusticl_cases() {
  OCL_ICD_VENDORS=rusticl.icd RUSTICL_ENABLE=llvmpipe case_tests --device opencl --partial \
    --small 1000 --timeout 300 "${gaps[@]}" --gaps tests/cases/gaps_rusticl.txt tests/cases/*.case
}

# offline_compiles PTXAS: what the cases ask for goes to one vendor each; tools/nightly gives all to all.
offline_compiles() {
  local programs=build/check/programs
  rm -rf "$programs" && mkdir -p "$programs"
  build/release/tests/kernel_variants "$programs" tests/cases/*.case &&
    ONCILLA_PTXAS=$1 tools/compile_kernels --some --report "$logs/registers.txt" "$programs"/*.cl
}

# kernel_figures PTXAS NVDISASM: a few nets on a few devices, against tests/golden/kernels; tools/nightly
# does all of them.
kernel_figures() {
  ONCILLA_PTXAS=$1 ONCILLA_NVDISASM=$2 tools/kernel_report --check --short
}

# The leaks that third parties have, and nothing else.
sanitized() {
  LSAN_OPTIONS=suppressions=$root/tests/leaks.txt:print_suppressions=0 \
    UBSAN_OPTIONS=print_stacktrace=1 OCL_ICD_VENDORS=pocl.icd "$@"
}

# The sanitizers see our own code only; on PoCL that is all that leads to the kernels.
sanitized_cases() {
  local tests=build/asan/tests/case_tests
  sanitized "$tests" --device cpu --timeout 300 tests/cases/*.case &&
    sanitized "$tests" --device cpu:plain --offset --timeout 300 tests/cases/*.case &&
    sanitized "$tests" --device cpu --mutate 1 --each 2 --partial --timeout 300 tests/cases/*.case &&
    sanitized "$tests" --device opencl --offset --timeout 300 "${gaps[@]}" tests/cases/*.case
}

# ONNX's own models: constants at odd addresses in mapped files, and whatever else they hold. Those
# that pass are counted and not named: without optimisation some round differently.
sanitized_onnx() {
  local data=/usr/share/libonnx-testdata/data
  sanitized build/asan/tests/onnx_tests --device cpu --at-least 905 "$data/node" &&
    sanitized build/asan/tests/onnx_tests --device cpu --at-least 135 "$data/simple" \
      "$data/pytorch-converted" "$data/pytorch-operator"
}

# fuzz FORMAT SECONDS: from inputs that are made anew and always the same random numbers, so that a
# run repeats as far as time allows; tools/nightly goes other ways each time.
fuzz() {
  local work=$root/build/check/fuzz/$1
  mkdir -p "$work/found" && cd "$work" || return 1
  "$root/build/asan/tests/fuzz_$1" -seed=1 -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -max_len=65536 -print_final_stats=1 -artifact_prefix="$work/" \
    "$work/found" "$root/build/check/fuzz/seeds/$1"
}

# As many at once as there are processors.
fuzz_all() {
  local format failed=0 running=()
  rm -rf build/check/fuzz && tests/fuzz/make_seeds.py build/check/fuzz/seeds \
    build/release/oncilla || return 1
  for format in checkpoint container graphdef onnx text tflite saved_model; do
    (fuzz "$format" 60 >"$root/build/check/fuzz_$format.log" 2>&1) &
    running+=("$!:$format")
    if ((${#running[@]} == jobs)) || [[ $format == saved_model ]]; then
      for pid in "${running[@]}"; do
        wait "${pid%%:*}" && tail -n 8 "build/check/fuzz_${pid#*:}.log" && continue
        failed=1
        say "fuzz_${pid#*:} found:"
        tail -n 60 "build/check/fuzz_${pid#*:}.log"
      done
      running=()
    fi
  done
  return "$failed"
}

# The Python package, tested in an environment of its own; its engine is made of the release build's objects.
python_package() {
  local venv=$root/build/python-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check 'nanobind>=3.0' numpy ml_dtypes pytest mypy onnx </dev/null || return 1
  build_in release release oncilla_python -DONCILLA_PYTHON=ON -DPython_EXECUTABLE="$venv/bin/python" &&
    PYTHONPATH=build/release/python OCL_ICD_VENDORS=pocl.icd "$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests
}

# ONNX Runtime's provider, in PyPI's onnxruntime, on the CPU device and on PoCL.
onnxruntime_provider() {
  local venv=$root/build/onnxruntime-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.31.1 onnx numpy pytest </dev/null || return 1
  build_in release release "oncilla_ort_ep fault_layer" -DONCILLA_ONNXRUNTIME=ON &&
    ONCILLA_ORT_EP=$root/build/release/onnxruntime/liboncilla_ort_ep.so OCL_ICD_VENDORS=pocl.icd \
      ONCILLA_FAULT_LAYER=$root/build/release/tests/libfault_layer.so \
      "$venv/bin/python" -m pytest -q -p no:cacheprovider integrations/onnxruntime/tests
}

# The server, called by public clients in an environment of their own.
server_tests() {
  local venv=$root/build/server-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/pip" install -q --disable-pip-version-check 'tritonclient[http,grpc]==2.73.0' onnx numpy psutil pytest \
    </dev/null || return 1
  build_in release release "oncilla_server oncilla_program" -DONCILLA_SERVER=ON &&
    ONCILLA_SERVER=build/release/oncilla_server "$venv/bin/python" -m pytest -q -p no:cacheprovider server/tests
}

# try_fetch VARIABLE FUNCTION: a download that does not come fails by name.
try_fetch() {
  local -n into=$1
  into=$("$2" 2>"$logs/$2.log") && return 0
  step "$2" cat_and_fail "$logs/$2.log"
}
cat_and_fail() { cat "$1" && false; }

# What the sanitizers and fuzzers run, and no more: it takes clang longer than all else here.
asan_targets="unit_tests tflite_tests case_tests onnx_tests fuzz_checkpoint fuzz_container fuzz_graphdef fuzz_onnx \
  fuzz_text fuzz_tflite fuzz_saved_model"

check_all() {
  local intel ptxas nvdisasm shape
  [[ -x build/release/tests/case_tests ]] || return
  step "cases with lesser SIMD" simd_cases
  if fits "Python package" 5; then step "Python package" python_package; fi
  if fits "ONNX Runtime's provider" 3; then step "ONNX Runtime's provider" onnxruntime_provider; fi
  if fits "server" 3; then step "server" server_tests; fi
  if fits "cases on Intel's OpenCL" 7 && try_fetch intel fetch_intel_opencl; then
    for shape in gpu cpu; do
      step "cases on Intel's OpenCL ($shape)" intel_cases "$shape" "$intel"
    done
  fi
  for shape in gpu cpu; do step "cases on Oclgrind ($shape)" oclgrind_cases "$shape"; done
  step "cases on rusticl" rusticl_cases
  if fits "tsan" 5 &&
    step "build (tsan)" build_in tsan tsan thread_tests -DONCILLA_OPENCL=OFF; then
    step "threads (tsan)" build/tsan/tests/thread_tests
  fi
  if fits "kernels compiled offline" 9 && try_fetch ptxas find_ptxas; then
    step "kernels compiled offline" offline_compiles "$ptxas"
  fi
  if fits "kernels' figures" 3 && try_fetch ptxas find_ptxas && try_fetch nvdisasm find_nvdisasm; then
    step "kernels' figures" kernel_figures "$ptxas" "$nvdisasm"
  fi
  if fits "asan, ubsan and fuzzers" 28 &&
    step "build (clang 14, asan, ubsan)" build_in asan asan "$asan_targets"; then
    step "unit tests (asan, ubsan)" sanitized build/asan/tests/unit_tests
    step "TFLite (asan, ubsan)" sanitized build/asan/tests/tflite_tests
    step "cases (asan, ubsan)" sanitized_cases
    step "ONNX's tests (asan, ubsan)" sanitized_onnx
    step "fuzzers, a minute each" fuzz_all
  fi
}
