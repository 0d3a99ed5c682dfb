// Undo by an explicit stack. Every step that changed something pushes its inverse. The inverses run in
// reverse order unless Commit() was called.
//
//   UndoStack undo;
//   RH_TRY(links.SetVf(pf, wanted));
//   undo.Push("VF settings", [&] { return links.SetVf(pf, before); });
//   ...
//   undo.Commit();
//
// Unlike a deferred function that reads a captured error variable, an early return cannot forget it. An
// inverse must be safe to run when its step is already undone. Run() reports failures and goes on, since the
// other steps still have to be undone. Not thread-safe. Objects that an inverse refers to must outlive the
// stack.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

class UndoStack {
 public:
  using Inverse = std::function<Result<void>()>;

  UndoStack() = default;
  UndoStack(const UndoStack&) = delete;
  UndoStack& operator=(const UndoStack&) = delete;
  ~UndoStack() { (void)Run(); }

  void Push(std::string what, Inverse inverse) { steps_.push_back({std::move(what), std::move(inverse)}); }
  void Commit() { steps_.clear(); }

  // Undoes all steps, newest first; returns the errors, each wrapped with its
  // step's name. Afterwards the stack is empty.
  std::vector<Error> Run() {
    std::vector<Error> errors;
    while (!steps_.empty()) {
      Step step = std::move(steps_.back());
      steps_.pop_back();
      if (auto done = step.inverse(); !done) {
        errors.push_back(Wrap(std::move(done.error()), "undoing " + step.what));
      }
    }
    return errors;
  }

 private:
  struct Step {
    std::string what;
    Inverse inverse;
  };
  std::vector<Step> steps_;
};

}  // namespace railhead
