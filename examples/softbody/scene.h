/* A scene: where its bodies are before the first frame. */
#ifndef SOFTBODY_SCENE_H
#define SOFTBODY_SCENE_H

#include "softbody/batch.h"

enum { SCENE_BODIES = 30 };

/* The scene of this number, whole, at frame 0. The numbers differ in sizes, places and turns. */
void scene_make(uint32_t number, struct batch *ret);

#endif
