// Pipe, fork, exec; lines as they come.
#include "tests/case_runner/child.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>
#include <vector>

#include "engine/base/status.h"

namespace oncilla::testing {

ChildEnd RunChild(char** argv, size_t from, int timeout_s,
                  const std::function<void(size_t, const std::string&)>& on_end) {
  ChildEnd end;
  end.next = from;
  int ends[2];
  if (pipe(ends) != 0) {
    end.broken = "no pipe to a child";
    return end;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::string flag = "--child", index = std::to_string(from);
    std::vector<char*> args = {argv[0], flag.data(), index.data()};
    for (char** a = argv + 1; *a != nullptr; ++a) args.push_back(*a);
    args.push_back(nullptr);
    execv("/proc/self/exe", args.data());
    _exit(127);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    end.broken = "no child can be started";
    return end;
  }
  std::string buffer;
  for (;;) {
    pollfd fd{ends[0], POLLIN, 0};
    if (poll(&fd, 1, timeout_s * 1000) == 0) {
      kill(pid, SIGKILL);
      end.how = StrCat("no answer within ", timeout_s, " s");
      break;
    }
    char chunk[4096];
    const ssize_t got = read(ends[0], chunk, sizeof(chunk));
    if (got <= 0) break;
    buffer.append(chunk, static_cast<size_t>(got));
    for (size_t at; (at = buffer.find('\n')) != std::string::npos; buffer.erase(0, at + 1)) {
      const std::string line = buffer.substr(0, at);
      if (line.rfind("begin ", 0) == 0) {
        end.next = std::stoul(line.substr(6));
        end.in_test = true;
      } else if (line.rfind("end ", 0) == 0) {
        on_end(end.next, line.substr(std::min(line.size(), line.find(' ', 4) + 1)));
        end.in_test = false;
        ++end.next;
      } else if (line.rfind("broken ", 0) == 0) {
        end.broken = line.substr(7);
      } else {
        std::cout << line << "\n";
      }
    }
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!end.how.empty()) return end;
  if (WIFSIGNALED(status)) {
    end.how = StrCat("died with signal ", strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0 || end.in_test) {
    end.how = StrCat("ended with code ", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace oncilla::testing
