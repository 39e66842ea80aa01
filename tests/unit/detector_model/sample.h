/* The smallest model that is right: a pipeline of one stage, and the file that it names. */
#ifndef TESTS_UNIT_DETECTOR_MODEL_SAMPLE_H
#define TESTS_UNIT_DETECTOR_MODEL_SAMPLE_H

#define SAMPLE_MODEL "models/cars.onnx"
#define SAMPLE_PIPELINE                                                                            \
    "{\"version\":1,\"models\":{\"cars\":{\"file\":\"" SAMPLE_MODEL "\",\"decoder\":\"tensor\","   \
    "\"input\":{\"width\":8,\"height\":8}}},\"stages\":[{\"name\":\"s\",\"model\":\"cars\","       \
    "\"fields\":{\"n\":\"number\"}}]}"

#endif
