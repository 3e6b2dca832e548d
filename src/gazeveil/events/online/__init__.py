"""Events while samples arrive."""
