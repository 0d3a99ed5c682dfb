#include "deviceplugin/tools/reach_view/reach_svg.h"

#include <algorithm>

#include "deviceplugin/tools/topology_view/svg.h"

namespace railhead {
namespace {

constexpr const char* kReachStyle =
    "text{font-family:ui-monospace,monospace;fill:#1f2328}.t{font-size:12px}.n{font-size:10px}"
    ".h{font-size:14px;font-weight:bold}.bg{fill:#ffffff}.reachable{fill:#2da44e}.unknown{fill:#d0d7de}"
    ".lossy{fill:#eac54f}.paths{fill:#fb8f44}.mtu{fill:#a475f9}.noRdma{fill:#bf8700}.oneWay{fill:#ff8182}."
    "silent{fill:#cf222e}"
    ".none{fill:#eaeef2}.self{fill:#6e7781}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.none{fill:#30363d}}";

constexpr int kMargin = 16;
constexpr int kTextHeight = 18;
constexpr int kSide = 480;               // of a rail's square, about
constexpr int kGap = 24;                 // between squares
constexpr int kNameWidth = 110;          // of nodes beside a square
constexpr std::size_t kMostFaults = 20;  // that are told below
constexpr std::string_view kLegendMarks = ".?~/m<X_";

std::string StyleOf(char mark) {
  if (mark == kMarkSelf) return "self";
  const auto state = StateOfMark(mark);
  return state ? std::string(NameOf(*state)) : "none";
}

class ReachPicture {
 public:
  ReachPicture(const ReachMatrix& matrix, const std::vector<ReachFault>& faults)
      : matrix_(matrix),
        faults_(faults),
        nodes_(static_cast<int>(matrix.nodes.size())),
        cell_(std::clamp(kSide / std::max(nodes_, 1), 1, 16)) {}

  std::string Draw() {
    const int squares = static_cast<int>(matrix_.rails.size());
    const int columns = squares > 1 ? 2 : 1;
    const int wide = kNameWidth + std::max(nodes_ * cell_, 160) + kGap;
    const int high = kTextHeight + nodes_ * cell_ + kGap;
    const int top = kMargin + 2 * kTextHeight;
    const int bottom = top + (squares + columns - 1) / columns * high;
    const std::size_t told = std::min(faults_.size(), kMostFaults + 1);
    const int height = bottom + (static_cast<int>(told) + 1) * kTextHeight + kMargin;
    const int width = std::max(2 * kMargin + columns * wide, 760);
    svg_.Rectangle({0, 0, width, height}, "bg");
    AddLegend();
    for (int i = 0; i < squares; ++i)
      AddSquare(matrix_.rails[static_cast<std::size_t>(i)], kMargin + i % columns * wide,
                top + i / columns * high);
    AddFaults(bottom);
    return svg_.Document(width, height, "who reaches whom on each rail", kReachStyle);
  }

 private:
  void AddLegend() {
    int x = kMargin;
    svg_.Text(x, kMargin + 10, "a row says of a column:");
    x += 176;
    for (const char mark : kLegendMarks) {
      const std::string meaning(MeaningOf(mark));
      svg_.Rectangle({x, kMargin, 12, 12}, StyleOf(mark));
      svg_.Text(x + 16, kMargin + 10, meaning, "n");
      x += 26 + 6 * static_cast<int>(meaning.size());
    }
  }

  void AddSquare(const RailMatrix& rail, int x, int y) {
    svg_.Text(x, y + 12, rail.rail, "h");
    y += kTextHeight;
    const int side = nodes_ * cell_;
    svg_.Rectangle({x + kNameWidth, y, side, side}, StyleOf('.'));
    // As many names as there is room for.
    const int step = std::max(1, (10 + cell_ - 1) / cell_);
    for (int row = 0; row < nodes_; row += step)
      svg_.Text(x, y + row * cell_ + std::max(cell_ / 2 + 4, 8),
                Shortened(matrix_.nodes[static_cast<std::size_t>(row)], 17), "n");
    for (std::size_t row = 0; row < matrix_.nodes.size(); ++row) AddRow(rail, row, x + kNameWidth, y);
  }

  void AddRow(const RailMatrix& rail, std::size_t row, int x, int y) {
    const std::string& marks = rail.rows[row];
    for (std::size_t begin = 0; begin < marks.size();) {
      const std::size_t end = std::min(marks.find_first_not_of(marks[begin], begin), marks.size());
      if (marks[begin] != MarkOf(PeerState::kReachable)) {
        svg_.Rectangle({x + static_cast<int>(begin) * cell_, y + static_cast<int>(row) * cell_,
                        static_cast<int>(end - begin) * cell_, cell_},
                       StyleOf(marks[begin]), TitleOf(row, begin, end, marks[begin]));
      }
      begin = end;
    }
  }

  [[nodiscard]] std::string TitleOf(std::size_t row, std::size_t begin, std::size_t end, char mark) const {
    if (mark == kMarkSelf) return matrix_.nodes[row];
    std::string to = matrix_.nodes[begin];
    if (end - begin > 1) to += " to " + matrix_.nodes[end - 1];
    return matrix_.nodes[row] + ", of " + to + ": " + std::string(MeaningOf(mark));
  }

  void AddFaults(int y) {
    for (std::size_t i = 0; i < std::min(faults_.size(), kMostFaults); ++i)
      svg_.Text(kMargin, y += kTextHeight, Shortened(TextOf(faults_[i]), 140));
    if (faults_.size() > kMostFaults)
      svg_.Text(kMargin, y + kTextHeight, std::to_string(faults_.size() - kMostFaults) + " more");
    if (faults_.empty()) svg_.Text(kMargin, y + kTextHeight, "no faults");
  }

  const ReachMatrix& matrix_;
  const std::vector<ReachFault>& faults_;
  const int nodes_;
  const int cell_;
  Svg svg_;
};

}  // namespace

std::string DrawReach(const ReachMatrix& matrix, const std::vector<ReachFault>& faults) {
  return ReachPicture(matrix, faults).Draw();
}

}  // namespace railhead
