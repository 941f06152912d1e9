// A plan that an executor keeps, with its instances.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/run/executor.h"

namespace oncilla {

struct Executor::Entry {
  std::string key;
  std::shared_ptr<const Plan> plan;
  std::vector<std::unique_ptr<Instance>> idle;
  int alive = 0;  // idle or in use
};

}  // namespace oncilla
