import { withBodyFault, type BodyDetails } from "../../faults/body-faults.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import { inflatedUsage } from "../../faults/inflated-usage.ts";
import type { Reply } from "../../frame.ts";
import type { JsonRecord } from "../../read-json.ts";
import { errorReply } from "../bedrock-error.ts";
import { streamException } from "../exceptions.ts";

/** An unstreamed answer with the fault applied; exceptions within streams refuse it. */
export function bodyReply(body: JsonRecord, details: BodyDetails): Reply {
  const exception = streamException(details.fault.mode);
  return exception === undefined ? withBodyFault(body, details) : errorReply(exception.error);
}

/** InvokeModel's headers with token counts. */
export function countHeaders(
  counts: Readonly<Partial<Record<"input" | "output", number>>>,
  { mode }: Fault,
): Readonly<Record<string, string>> {
  if (mode === "ok-no-usage") return {};
  const sent = Object.entries(mode === "wrong-usage" ? inflatedUsage(counts) : counts);
  return Object.fromEntries(
    sent.map(([side, count]) => [`x-amzn-bedrock-${side}-token-count`, String(count)]),
  );
}
