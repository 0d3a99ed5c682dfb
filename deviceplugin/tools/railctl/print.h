// How the commands write: tables for people, JSON for scripts. What pods, switches and other nodes chose
// reaches no terminal as it is: printable.h.
// Threads: one.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace railhead::railctl {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, the last one as it is. The first row is the heading.
void PrintTable(const std::vector<Row>& rows);
void PrintJson(const nlohmann::json& json);
// How long ago, in the largest unit of which there are two: "119s", "2m", "47h", "2d".
std::string AgeOf(std::chrono::system_clock::time_point time);

}  // namespace railhead::railctl
