// WAV files of 16-bit samples: a RIFF container with a "fmt " and a "data" chunk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

struct Wave {
  int64_t channels = 0;
  uint32_t rate = 0;      // samples per second
  int64_t samples = 0;    // per channel
  std::string_view data;  // 16-bit little-endian samples, interleaved by channel
};

// A view into the file. InvalidArgument when it is not a WAV file with 16-bit PCM samples.
Result<Wave> ReadWave(std::string_view bytes);

// The header of a file with `bytes` bytes of such samples.
std::string WaveHeader(uint16_t channels, uint32_t rate, uint32_t bytes);

}  // namespace oncilla
