#include "detector/camera/hardware.h"

#include <libavutil/hwcontext.h>
#include <stdio.h>
#include <string.h>

bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX])
{
    enum AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
    bool is_known = false;

    ret_known[0] = '\0';
    while ((type = av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE) {
        const char *one = av_hwdevice_get_type_name(type);
        size_t used = strlen(ret_known);
        is_known |= strcmp(one, name) == 0;
        (void)snprintf(ret_known + used, CAMERA_HARDWARE_MAX - used, "%s%s", used > 0 ? ", " : "",
                       one);
    }
    return is_known;
}
