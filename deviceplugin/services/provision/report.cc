#include "deviceplugin/services/provision/report.h"

namespace railhead::provision {
namespace {

std::string Vfs(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " VF" : " VFs");
}

std::string StepOf(const VfTarget& vf) {
  std::string step = "VF " + std::to_string(vf.index) + ":";
  const char* comma = " ";
  const auto add = [&](const std::string& what) {
    step += comma + what;
    comma = ", ";
  };
  if (vf.mac) add("MAC " + vf.mac->ToString());
  if (!vf.driver.empty()) add("driver " + vf.driver);
  if (vf.mtu) add("MTU " + std::to_string(*vf.mtu));
  return step;
}

std::string Head(const PfActual& pf) {
  return "rail " + pf.rail + ", " + pf.Name() + ": ";
}

std::string ErrorLines(const Error& error) {
  return error.message + "\n" + (error.hint.empty() ? "" : "  " + error.hint + "\n");
}

std::string StepLines(const PfPlan& plan) {
  std::string text;
  for (const std::string& step : StepsOf(plan)) text += "  " + step + "\n";
  return text;
}

std::string AbsentLines(const std::vector<std::string>& rails) {
  std::string text;
  for (const std::string& rail : rails) text += "rail " + rail + ": this node has no PF for it\n";
  return text;
}

std::string NothingLine(const PfPlan& plan) {
  return Vfs(plan.actual.vfs.size()) + ", nothing to do\n";
}

}  // namespace

std::vector<std::string> StepsOf(const PfPlan& plan) {
  const PfActual& pf = plan.actual;
  std::vector<std::string> steps;
  steps.reserve(plan.vfs.size() + 5);
  if (plan.mtu)
    steps.push_back("set the PF's MTU from " + std::to_string(pf.link ? pf.link->mtu : 0) + " to " +
                    std::to_string(*plan.mtu));
  if (plan.bring_up) steps.emplace_back("bring the PF up");
  if (plan.make && pf.interrupted) steps.emplace_back("begin again what was interrupted");
  if (plan.make && !pf.vfs.empty()) steps.push_back("remove its " + Vfs(pf.vfs.size()));
  if (plan.make && plan.wanted_vfs > 0)
    steps.push_back("make " + Vfs(static_cast<std::size_t>(plan.wanted_vfs)));
  for (const VfTarget& vf : plan.vfs) {
    if (vf.mac || vf.mtu || !vf.driver.empty()) steps.push_back(StepOf(vf));
  }
  return steps;
}

std::string PlanAsText(const VfsPlan& plan) {
  std::string text;
  for (const PfPlan& pf : plan.pfs) {
    text += Head(pf.actual);
    if (pf.refused) {
      text += "refused: " + ErrorLines(*pf.refused) + (pf.NothingToDo() ? "" : "  it would be:\n");
    } else {
      text += pf.NothingToDo() ? NothingLine(pf) : "to do:\n";
    }
    text += StepLines(pf);
  }
  return text + AbsentLines(plan.absent_rails);
}

std::string OutcomeAsText(const VfsOutcome& outcome) {
  std::string text;
  for (const PfOutcome& pf : outcome.pfs) {
    text += Head(pf.plan.actual);
    if (pf.error) {
      text += (pf.plan.refused ? "refused: " : "failed: ") + ErrorLines(*pf.error);
    } else if (!pf.Changed()) {
      text += NothingLine(pf.plan);
    } else {
      text += "done:\n" + StepLines(pf.plan);
    }
  }
  return text + AbsentLines(outcome.absent_rails);
}

}  // namespace railhead::provision
