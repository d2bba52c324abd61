import type { Admission } from "../../admission/admit.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Meter } from "../metering/meter.ts";
import type { CallWork } from "../call-work.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { CallServices } from "../services.ts";

/** The call that takes turns, and what it needs for them. */
export interface TurnsOptions {
  /** Lists the current candidates, best first. */
  readonly list: () => readonly Candidate[];
  readonly call: Call;
  readonly admission: Admission;
  readonly work: Pick<CallWork<unknown>, "isStreamed">;
  readonly meter: Pick<Meter, "path">;
  readonly services: Pick<CallServices, "capacity" | "health" | "budget" | "clock">;
}
