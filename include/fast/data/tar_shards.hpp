// Shards of samples as tar files, as WebDataset writes them (https://github.com/webdataset).
#pragma once

#include <fast/data/load.hpp>

#include <filesystem>
#include <vector>

namespace fast::data {

/// Opens the samples of tar files without reading their values: headers and labels are read here.
/// Members that follow one another and whose names are equal up to the first dot of the last
/// component are one sample. It has
/// - values: KEY.jpg, KEY.jpeg, KEY.png, KEY.webp (3 × rows × columns) or KEY.npy (see read_npz),
/// - a target: KEY.cls, a number as text, or KEY.json, a number or an object with a number at
///   `options.target` ("label" if that is empty).
/// Other members are not looked at. With TargetKind::classes targets are whole numbers from 0 on,
/// `options.classes` of them (0: the largest + 1); with TargetKind::numbers they are floats.
///
/// The first sample determines the shape. A sample without values or target, or with a target that
/// is none of these, is left out (SampleSource::left_out()). A sample whose image cannot be decoded
/// or has another shape is damaged. With `options.resize` all images get this size; arrays keep
/// theirs.
///
/// Throws Error(data), naming the file, for a damaged, truncated or compressed tar file, and for
/// files without samples.
Dataset open_tar(const std::vector<std::filesystem::path>& files, const LoadOptions& options);

}  // namespace fast::data
