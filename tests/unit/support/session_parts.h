// What an executor needs besides a graph, for tests: the CPU, a pool, a constant store.
#pragma once

#include <memory>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/compile/constants.h"
#include "engine/device/checked_device.h"
#include "engine/device/linked_backends.h"

namespace oncilla {

struct SessionParts {
  SessionParts() {
    std::vector<std::string> notes;
    const Backend* backend = LinkedBackends()[0];
    cpu = std::make_unique<CheckedDevice>(
        backend->open(backend->discover({}, notes)[0], {.threads = &threads, .cache_dir = ""})
            .value());
    device_list = {cpu.get()};
    pool = std::make_unique<Pool>(cpu.get(), &ledger, PoolOptions{});
    owner = ledger.AddOwner(OwnerKind::kModel, "test");
    constants = std::make_unique<ConstantStore>(device_list, std::vector<Pool*>{pool.get()}, owner);
  }
  std::span<Device* const> devices() const { return device_list; }
  std::span<const std::string> names() const { return name_list; }
  std::vector<Pool*> pools() const { return {pool.get()}; }

  ThreadPool threads{2};
  Ledger ledger;
  OwnerId owner = kNoOwner;
  std::unique_ptr<Device> cpu;
  std::vector<Device*> device_list;
  std::vector<std::string> name_list = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  std::unique_ptr<Pool> pool;
  std::unique_ptr<ConstantStore> constants;
};

}  // namespace oncilla
