// The main function of the unit tests: sessions check every pass and every call of a device.
#include <gmock/gmock.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("ONCILLA_VERIFY", "1", /*overwrite=*/1);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
