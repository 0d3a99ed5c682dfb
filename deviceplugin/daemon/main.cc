#include "deviceplugin/daemon/railheadd.h"

int main(int argc, char** argv) {
  return railhead::daemon::RunRailheadd(argc, argv);
}
