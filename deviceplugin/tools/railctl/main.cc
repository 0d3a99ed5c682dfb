#include "deviceplugin/tools/railctl/commands.h"

int main(int argc, char** argv) {
  return railhead::railctl::RunRailctl(argc, argv);
}
