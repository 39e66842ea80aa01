/* OpenCV's dnn speaks C++ only; this is all of it that Baton sees. */
extern "C" {
#include "detector/infer/opencv_shim.h"
}

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/dnn.hpp>

#include <cstdio>

namespace
{

struct Net {
    cv::dnn::Net net;
    std::vector<cv::String> names;
    std::vector<cv::Mat> outputs;
};

/* OpenCV would write its errors to standard error as well. */
int say_nothing(int, const char *, const char *, const char *, int, void *)
{
    return 0;
}

/* Runs `work`; whatever it throws becomes a text. */
template <typename Work> bool guarded(char *error, size_t bytes, Work work)
{
    try {
        work();
        return true;
    } catch (const cv::Exception &thrown) {
        std::snprintf(error, bytes, "%s", thrown.err.c_str());
    } catch (const std::exception &thrown) {
        std::snprintf(error, bytes, "%s", thrown.what());
    } catch (...) {
        std::snprintf(error, bytes, "unknown exception");
    }
    return false;
}

void *open_net(const void *model, size_t bytes, int threads, char *error, size_t error_bytes)
{
    Net *ret = nullptr;
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    cv::redirectError(say_nothing);
    guarded(error, error_bytes, [&] {
        std::unique_ptr<Net> net(new Net);
        cv::setNumThreads(threads);
        net->net = cv::dnn::readNetFromONNX(static_cast<const char *>(model), bytes);
        net->net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
        net->names = net->net.getUnconnectedOutLayersNames();
        ret = net.release();
    });
    return ret;
}

int run_net(void *opaque, float *input, const shape *of, tensor *outputs, int max, char *error,
            size_t error_bytes)
{
    Net *net = static_cast<Net *>(opaque);
    int count = -1;
    guarded(error, error_bytes, [&] {
        const std::vector<int> sides(of->sides, of->sides + of->rank);
        net->net.setInput(cv::Mat(sides, CV_32F, input));
        net->net.forward(net->outputs, net->names);
        for (size_t i = 0; i < net->outputs.size() && static_cast<int>(i) < max; i++) {
            const cv::Mat &mat = net->outputs[i];
            CV_Assert(mat.type() == CV_32F && mat.isContinuous() && mat.dims <= SHAPE_RANK_MAX);
            outputs[i].values = mat.ptr<float>();
            outputs[i].shape.rank = mat.dims;
            std::copy(mat.size.p, mat.size.p + mat.dims, outputs[i].shape.sides);
        }
        count = std::min(static_cast<int>(net->outputs.size()), max);
    });
    return count;
}

} // namespace

extern "C" __attribute__((visibility("default"))) const opencv_calls baton_opencv;
const opencv_calls baton_opencv = {CV_VERSION, open_net, run_net};
