# Which Debian packages are missing, and installing them; sourced by quickstart and check.
# Nothing here needs root or the network unless something is missing.

say() { printf '%s\n' "$*"; }
complain() { printf '%s\n' "$*" >&2; }

# missing_packages GROUP..: the packages of these groups that are not installed.
missing_packages() {
  local name group rest need wanted=" $* "
  while read -r name group rest; do
    [[ -z $name || $name == \#* || $wanted != *" $group "* ]] && continue
    need=${rest%% *}
    if [[ $need == command:* ]] && command -v "${need#command:}" >/dev/null; then continue; fi
    if command -v dpkg-query >/dev/null &&
      [[ $(dpkg-query -W -f='${Status}' "$name" 2>/dev/null) == 'install ok installed' ]]; then
      continue
    fi
    say "$name"
  done <"$root/tools/packages.txt"
}

# Why a package is needed, according to the list.
package_purpose() {
  local name group rest
  while read -r name group rest; do
    [[ $name == "$1" ]] || continue
    [[ $rest == command:* ]] && rest=${rest#* }
    say "$rest"
  done <"$root/tools/packages.txt"
}

# ask QUESTION: yes or no, from the terminal; without a terminal the answer is no.
ask() {
  local answer
  [[ -t 0 && -t 1 ]] || return 1
  printf '%s [Y/n] ' "$1"
  read -r answer || return 1
  [[ -z $answer || $answer == [yY]* ]]
}

# retry COMMAND..: up to three times, with a pause, since a mirror may be busy.
retry() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    ((try < 3)) && sleep $((try * 5))
  done
  return 1
}

# install_packages NAME..: installs as root, or through sudo after asking. Where neither is
# possible, it fails and says what to do.
install_packages() {
  local as_root=() by_hand="apt-get install $*"
  if ! command -v apt-get >/dev/null; then
    complain "This is no Debian: install what corresponds to these packages: $*"
    return 1
  fi
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      complain "You are not root and there is no sudo. Ask somebody who is to run:"
      complain "  $by_hand"
      return 1
    fi
    if ! ask "Install them now with sudo?"; then
      complain "Not installed. To install them yourself:"
      complain "  sudo $by_hand"
      return 1
    fi
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  if ! retry "${as_root[@]}" apt-get -q update >"$log" 2>&1 ||
    ! retry "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -q install -y --no-install-recommends "$@" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    complain "The packages could not be installed. Is there a network? Nothing else was changed;"
    complain "when there is, run this again, or:"
    complain "  ${as_root[*]} $by_hand"
    return 1
  fi
  rm -f "$log"
}
