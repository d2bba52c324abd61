import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";

/**
 * Counts what upstreams have sent for callers who do not read it. An account may leave an equal
 * share of the memory unread, where one share is kept for an account that has nothing unread yet:
 * a half if it is the only one. Its streams are paused, never cut for it; its new calls are refused.
 */
export class UnreadStreams {
  readonly #byAccount = new Map<string, number>();

  /** `bytes` more, or fewer. */
  change(account: string, bytes: number): void {
    const unread = (this.#byAccount.get(account) ?? 0) + bytes;
    if (unread === 0) this.#byAccount.delete(account);
    else this.#byAccount.set(account, unread);
  }

  /** Throws 503 to an account that has left its share of `memoryBytes` unread. */
  check(account: string, memoryBytes: number): void {
    const unread = this.#byAccount.get(account) ?? 0;
    if (unread < memoryBytes / (this.#byAccount.size + 1)) return;
    throw new GatewayError("model_unavailable", {
      message:
        "Your account leaves too many streamed answers unread. Please read or close them, and " +
        "retry your request.",
      headers: retryHeaders(2_000),
      explanation: {
        rule: "body_memory_full",
        summary:
          "The account's share of `http.body_memory` is full of streamed answers that its callers " +
          "do not read.",
      },
    });
  }
}
