/* Every message that the worker protocol's specification shows, in its order, compact. The section
 * is where it stands; those of §9 are a log, with the number of the entry. */
#ifndef TESTS_DETECTOR_EXAMPLES_H
#define TESTS_DETECTOR_EXAMPLES_H

#include <stdbool.h>

struct example {
    const char *section;
    bool is_from_worker;
    const char *text;
};

static const struct example examples[] = {
    {"§6.1", true,
     "{\"type\":\"stateReport\",\"cpuUsage\":75.5,\"memoryUsage\":40.2,"
     "\"gpuUsage\":60.0,\"gpuMemoryUsage\":25.1,"
     "\"cameraConnections\":[{\"subscriptionIdentifier\":\"display-001;cam-001\","
     "\"modelId\":101,\"modelName\":\"General Object Detection\",\"online\":true,"
     "\"cropX1\":100,\"cropY1\":200,\"cropX2\":300,\"cropY2\":400}]}"},
    {"§6.2", true,
     "{\"type\":\"imageDetection\","
     "\"subscriptionIdentifier\":\"display-001;cam-001\","
     "\"timestamp\":\"2025-07-14T12:34:56.789Z\","
     "\"data\":{\"detection\":{\"carModel\":\"Civic\",\"carBrand\":\"Honda\","
     "\"carYear\":2023,\"bodyType\":\"Sedan\",\"licensePlateText\":\"ABCD1234\","
     "\"licensePlateConfidence\":0.95},\"modelId\":101,"
     "\"modelName\":\"US-LPR-and-Vehicle-ID\"}}"},
    {"§6.3", true,
     "{\"type\":\"patchSession\",\"sessionId\":12345,"
     "\"data\":{\"currentCar\":{\"carModel\":\"Civic\",\"carBrand\":\"Honda\","
     "\"licensePlateText\":\"ABCD1234\"}}}"},
    {"§7.1", false,
     "{\"type\":\"setSubscriptionList\","
     "\"subscriptions\":[{\"subscriptionIdentifier\":\"display-001;cam-001\","
     "\"rtspUrl\":\"rtsp://user:pass@host:port/stream1\","
     "\"snapshotUrl\":\"http://go2rtc/snapshot/1\",\"snapshotInterval\":5000,"
     "\"modelUrl\":\"http://storage/models/us-lpr.mpta?token=fresh-token\","
     "\"modelName\":\"US-LPR-and-Vehicle-ID\",\"modelId\":102,\"cropX1\":100,"
     "\"cropY1\":200,\"cropX2\":300,\"cropY2\":400},"
     "{\"subscriptionIdentifier\":\"display-002;cam-001\","
     "\"rtspUrl\":\"rtsp://user:pass@host:port/stream1\","
     "\"snapshotUrl\":\"http://go2rtc/snapshot/1\",\"snapshotInterval\":5000,"
     "\"modelUrl\":\"http://storage/models/vehicle-detect.mpta?token=fresh-token\","
     "\"modelName\":\"Vehicle Detection\",\"modelId\":201,\"cropX1\":0,"
     "\"cropY1\":0,\"cropX2\":1920,\"cropY2\":1080}]}"},
    {"§7.2", false, "{\"type\":\"requestState\"}"},
    {"§7.3", false,
     "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":12345,"
     "\"success\":true,\"message\":\"Session updated successfully.\"}}"},
    {"§7.4", false,
     "{\"type\":\"setSessionId\","
     "\"payload\":{\"displayIdentifier\":\"display-001\",\"sessionId\":12345}}"},
    {"§7.4", false,
     "{\"type\":\"setSessionId\","
     "\"payload\":{\"displayIdentifier\":\"display-001\",\"sessionId\":null}}"},
    {"§7.5", false,
     "{\"type\":\"setProgressionStage\","
     "\"payload\":{\"displayIdentifier\":\"display-001\","
     "\"progressionStage\":\"car_fueling\"}}"},
    {"§7.5", false,
     "{\"type\":\"setProgressionStage\","
     "\"payload\":{\"displayIdentifier\":\"display-001\","
     "\"progressionStage\":null}}"},
    {"§9.1", true,
     "{\"type\":\"stateReport\",\"cpuUsage\":70.2,\"memoryUsage\":38.1,"
     "\"gpuUsage\":55.0,\"gpuMemoryUsage\":20.0,\"cameraConnections\":[]}"},
    {"§9.2", false,
     "{\"type\":\"setSubscriptionList\","
     "\"subscriptions\":[{\"subscriptionIdentifier\":\"display-001;entry-cam-01\","
     "\"rtspUrl\":\"rtsp://192.168.1.100/stream1\","
     "\"modelUrl\":\"http://storage/models/vehicle-id.mpta?token=fresh-token\","
     "\"modelName\":\"Vehicle Identification\",\"modelId\":201,"
     "\"snapshotInterval\":5000}]}"},
    {"§9.3", true,
     "{\"type\":\"stateReport\",\"cpuUsage\":72.5,\"memoryUsage\":39.0,"
     "\"gpuUsage\":57.0,\"gpuMemoryUsage\":21.0,"
     "\"cameraConnections\":[{\"subscriptionIdentifier\":\"display-001;entry-cam-01\","
     "\"modelId\":201,\"modelName\":\"Vehicle Identification\",\"online\":true}]}"},
    {"§9.4", false,
     "{\"type\":\"setSessionId\","
     "\"payload\":{\"displayIdentifier\":\"display-001\",\"sessionId\":12345}}"},
    {"§9.5", false,
     "{\"type\":\"setProgressionStage\","
     "\"payload\":{\"displayIdentifier\":\"display-001\","
     "\"progressionStage\":\"welcome\"}}"},
    {"§9.6", true,
     "{\"type\":\"imageDetection\","
     "\"subscriptionIdentifier\":\"display-001;entry-cam-01\","
     "\"timestamp\":\"2025-07-15T10:00:00.000Z\",\"sessionId\":12345,"
     "\"data\":{\"detection\":{\"carBrand\":\"Honda\",\"carModel\":\"CR-V\","
     "\"bodyType\":\"SUV\",\"licensePlateText\":\"GEMINI-AI\","
     "\"licensePlateConfidence\":0.98},\"modelId\":201,"
     "\"modelName\":\"Vehicle Identification\"}}"},
    {"§9.7", false,
     "{\"type\":\"setProgressionStage\","
     "\"payload\":{\"displayIdentifier\":\"display-001\","
     "\"progressionStage\":\"car_fueling\"}}"},
    {"§9.8", true,
     "{\"type\":\"stateReport\",\"cpuUsage\":70.0,\"memoryUsage\":38.0,"
     "\"gpuUsage\":55.0,\"gpuMemoryUsage\":20.0,\"cameraConnections\":[]}"},
    {"§9.8", false,
     "{\"type\":\"setSubscriptionList\","
     "\"subscriptions\":[{\"subscriptionIdentifier\":\"display-001;entry-cam-01\","
     "\"rtspUrl\":\"rtsp://192.168.1.100/stream1\","
     "\"modelUrl\":\"http://storage/models/vehicle-id.mpta?token=fresh-reconnect-token\","
     "\"modelName\":\"Vehicle Identification\",\"modelId\":201,"
     "\"snapshotInterval\":5000}]}"},
    {"§9.8", false,
     "{\"type\":\"setSessionId\","
     "\"payload\":{\"displayIdentifier\":\"display-001\",\"sessionId\":12345}}"},
    {"§9.8", false,
     "{\"type\":\"setProgressionStage\","
     "\"payload\":{\"displayIdentifier\":\"display-001\","
     "\"progressionStage\":\"car_fueling\"}}"},
    {"§9.9", false, "{\"type\":\"setSubscriptionList\",\"subscriptions\":[]}"},
    {"§9.10", true,
     "{\"type\":\"stateReport\",\"cpuUsage\":68.0,\"memoryUsage\":37.0,"
     "\"gpuUsage\":50.0,\"gpuMemoryUsage\":18.0,\"cameraConnections\":[]}"},
};

enum { EXAMPLE_COUNT = sizeof(examples) / sizeof(examples[0]) };

#endif
