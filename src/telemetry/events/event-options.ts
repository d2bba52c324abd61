import type { Clock } from "../../domain/clock.ts";
import type { Logger } from "../log/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";

export interface EventOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}
