// Precision and recall of boxes, for tests.
'use strict';

function iou([ax, ay, aw, ah], [bx, by, bw, bh]) {
    const w = Math.min(ax + aw, bx + bw) - Math.max(ax, bx);
    const h = Math.min(ay + ah, by + bh) - Math.max(ay, by);
    const both = w > 0 && h > 0 ? w * h : 0;
    return both / (aw * ah + bw * bh - both);
}

// Each rectangle of the truth is found by one object at most, of its class, at IoU 0.5 or above.
function score(wanted, found) {
    let hits = 0, overlap = 0, wanted_count = 0, found_count = 0;
    wanted.forEach((boxes, n) => {
        const left = [...(found.get(n) || [])];
        wanted_count += boxes.length;
        found_count += left.length;
        for (const one of boxes) {
            const fits = left.filter((other) => other.class === one.class)
                .map((other) => [iou(one.box, other.box), other]).sort((a, b) => b[0] - a[0])[0];
            if (fits && fits[0] >= 0.5) {
                hits++;
                overlap += fits[0];
                left.splice(left.indexOf(fits[1]), 1);
            }
        }
    });
    return { precision: hits / found_count, recall: hits / wanted_count, iou: overlap / hits,
        wanted_count, found_count };
}

module.exports = { score };
