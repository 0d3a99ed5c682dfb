#include "deviceplugin/tools/railctl/railctl.h"

int main(int argc, char** argv) {
  return railhead::railctl::RunRailctl(argc, argv);
}
