# What checks fetch from PyPI, in exact versions, into the user's cache; sourced by check. Each
# function prints the path of what it fetched; otherwise it fails and says on stderr what could not
# be fetched. Intel's runtime and NVIDIA's assembler come under their owners' licences: they are
# fetched, never shipped.

downloads=${ONCILLA_DOWNLOADS:-${XDG_CACHE_HOME:-$HOME/.cache}/oncilla-downloads}

# fetch_wheels FOLDER PACKAGE==VERSION..: a virtual environment with only these packages; made once.
fetch_wheels() {
  local folder=$downloads/$1 log
  shift
  [[ -e $folder/complete && $(<"$folder/complete") == "$*" ]] && return 0
  rm -rf "$folder"
  mkdir -p "$downloads"
  log=$(mktemp)
  if ! python3 -m venv "$folder" >"$log" 2>&1 ||
    ! retry "$folder/bin/pip" install -q --disable-pip-version-check --no-deps "$@" \
      >"$log" 2>&1 </dev/null; then
    tail -n 3 "$log" >&2
    rm -rf "$log" "$folder"
    complain "could not fetch $* from PyPI"
    return 1
  fi
  rm -f "$log"
  echo "$*" >"$folder/complete"
}

# Intel's OpenCL for CPUs: prints the library to name in OCL_ICD_VENDORS.
fetch_intel_opencl() {
  # The runtime needs the compiler's runtime, but does not depend on it.
  fetch_wheels intel-opencl intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 \
    intel-cmplr-lic-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0 || return 1
  say "$downloads/intel-opencl/lib/libintelocl.so"
}

# NVIDIA's assembler: that of a CUDA toolkit of the version that tests/golden/kernels was made with,
# else the one on PyPI.
find_ptxas() {
  local found version=13.0.88
  found=$(command -v ptxas || command -v /usr/local/cuda/bin/ptxas) &&
    [[ $("$found" --version) == *"V$version"* ]] && say "$found" && return 0
  fetch_wheels nvidia-nvcc nvidia-cuda-nvcc==$version || return 1
  found=$(find "$downloads/nvidia-nvcc" -name ptxas -type f | head -n 1)
  [[ -n $found ]] || { complain "nvidia-cuda-nvcc holds no ptxas" && return 1; }
  chmod +x "$found"
  say "$found"
}

# NVIDIA's disassembler.
find_nvdisasm() {
  local found
  found=$(command -v nvdisasm || command -v /usr/local/cuda/bin/nvdisasm) && say "$found" && return 0
  fetch_wheels nvidia-nvdisasm nvidia-cuda-nvdisasm==13.5.37 || return 1
  found=$(find "$downloads/nvidia-nvdisasm" -name nvdisasm -type f | head -n 1)
  [[ -n $found ]] || { complain "nvidia-cuda-nvdisasm holds no nvdisasm" && return 1; }
  chmod +x "$found"
  say "$found"
}
