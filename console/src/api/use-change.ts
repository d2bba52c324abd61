import { useCallback, useRef, useState } from "react";
import { change } from "./client.ts";
import type { Changes, Parameters } from "./endpoints.ts";
import type { Answer, ApiFailure } from "./failure.ts";
import { readAllAgain } from "./use-read.ts";

/**
 * A change that a form or a button makes. After it, all that is shown is read again. Nothing of it
 * is kept but the failure: answers may hold secrets. A repeat of a request whose answer was lost has
 * the same `Idempotency-Key`.
 */
export function useChange<Name extends keyof Changes>(name: Name) {
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<ApiFailure>();
  const unanswered = useRef<{ request: string; key: string }>(undefined);

  const run = useCallback(
    async (
      body: Changes[Name]["body"],
      parameters: Parameters = {},
    ): Promise<Answer<Changes[Name]["answer"]>> => {
      const request = JSON.stringify([parameters, body]);
      const last = unanswered.current;
      const key = last?.request === request ? last.key : newKey();
      unanswered.current = { request, key };
      setRunning(true);
      const answer = await change(name, body, { parameters, idempotencyKey: key });
      if (answer.ok) await readAllAgain();
      setRunning(false);
      setFailure(answer.ok ? undefined : answer.failure);
      if (answer.ok || !answer.failure.isPassing) unanswered.current = undefined;
      return answer;
    },
    [name],
  );
  const clear = useCallback(() => setFailure(undefined), []);
  return { run, isRunning, failure, clear };
}

/** `crypto.randomUUID` is missing on plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
