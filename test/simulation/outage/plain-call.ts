import type { CallPlan } from "../scenario.ts";

type Wanted = Pick<CallPlan, "id" | "atMs" | "key" | "alias" | "kind">;

/** An ordinary call; scenarios set the fields they are about. */
export function plainCall(values: Wanted & Partial<CallPlan>): CallPlan {
  return {
    gateway: 0,
    secret: 0,
    promptBytes: 60,
    parts: 1,
    cap: values.kind === "embedding" ? undefined : 64,
    outputTokens: 20,
    capacity: "auto",
    deadlineMs: undefined,
    leave: undefined,
    readMs: 0,
    ...values,
  };
}
