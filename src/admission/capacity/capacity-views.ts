import type { CapacityClass } from "../../domain/usage/usage.ts";
import type { PoolName, PoolView } from "./capacity-options.ts";
import type { GateUse } from "./pool-places.ts";

export function viewOf(place: PoolName, { places, queue }: GateUse): PoolView {
  const count = (of: (capacityClass: CapacityClass) => number) => ({
    provisioned: of("provisioned"),
    spillover: of("spillover"),
    "on-demand": of("on-demand"),
  });
  return {
    ...place,
    inFlight: count((capacityClass) => places.of(capacityClass)),
    queued: count((capacityClass) => queue.count(capacityClass)),
  };
}
