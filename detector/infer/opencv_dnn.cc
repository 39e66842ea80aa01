/* OpenCV's dnn speaks C++ only: libbaton-opencv.so is the library of library.h on it, and has one
 * symbol, `baton_opencv`. No exception leaves it, and a net lives as long as the process. */
extern "C" {
#include "base/error.h"
#include "detector/infer/library.h"
}

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/dnn.hpp>

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

/* Returns the result of `work`; whatever that throws becomes the error. OpenCV's own text is the
 * longest part and stands last: callers cut the end off a long message. */
template <typename Work>
int guarded(const network *network, const char *what, baton_error *reterr, Work work)
{
    std::string text = "unknown exception";
    try {
        return work();
    } catch (const cv::Exception &thrown) {
        text = thrown.err;
    } catch (const std::exception &thrown) {
        text = thrown.what();
    } catch (...) {
    }
    return error_set(reterr, BATON_EINVAL,
                     "%s cannot %s, ONNX Runtime may ('make deps-onnxruntime' fetches it): %.300s",
                     network->library->name, what, text.c_str());
}

int run_net(network *network, int64_t pictures, tensor *outputs, baton_error *reterr)
{
    Net *net = static_cast<Net *>(network->own);
    return guarded(network, "run the model", reterr, [&] {
        std::vector<int> sides(network->input.sides, network->input.sides + network->input.rank);
        sides[0] = static_cast<int>(pictures);
        net->net.setInput(cv::Mat(sides, CV_32F, network->values));
        net->net.forward(net->outputs, net->names);
        int count = std::min(static_cast<int>(net->outputs.size()), int(SESSION_OUTPUTS_MAX));
        for (int i = 0; i < count; i++) {
            const cv::Mat &mat = net->outputs[i];
            CV_Assert(mat.type() == CV_32F && mat.isContinuous() && mat.dims <= SHAPE_RANK_MAX);
            outputs[i].values = mat.ptr<float>();
            outputs[i].shape.rank = mat.dims;
            std::copy(mat.size.p, mat.size.p + mat.dims, outputs[i].shape.sides);
            CV_Assert(shape_numbers(&outputs[i].shape) >= 0);
        }
        return count;
    });
}

/* OpenCV does not say whether a model takes more than one picture, and knows only after a run that
 * it can be run. */
int open_net(network *network, const void *bytes, size_t count, baton_error *reterr)
{
    tensor outputs[SESSION_OUTPUTS_MAX];
    network->input.sides[0] = 1;
    int code = guarded(network, "read the model", reterr, [&] {
        std::unique_ptr<Net> net(new Net);
        cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
        cv::redirectError(say_nothing);
        cv::setNumThreads(network->library->threads);
        net->net = cv::dnn::readNetFromONNX(static_cast<const char *>(bytes), count);
        net->net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
        net->names = net->net.getUnconnectedOutLayersNames();
        network->own = net.release();
        return 0;
    });
    return code ? code : std::min(run_net(network, 1, outputs, reterr), 0);
}

} // namespace

extern "C" __attribute__((visibility("default"))) library baton_opencv;
library baton_opencv = {"opencv " CV_VERSION, false, 0, open_net, run_net};
