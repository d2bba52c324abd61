import { claimsContract } from "./claims-contract.ts";
import { replyStoreContract } from "./reply-store-contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { MemoryReplyStore } from "../support/memory-reply-store.ts";

replyStoreContract("memory", () => {
  const erased = new Set<string>();
  return {
    store: new MemoryReplyStore({ isErased: (accountId) => erased.has(accountId) }),
    erase: (accountId) => Promise.resolve(void erased.add(accountId)),
  };
});

claimsContract("memory", () => {
  const clock = new ManualClock();
  return {
    store: new MemoryReplyStore({ clock }),
    pass: (durationMs) => Promise.resolve(clock.advance(durationMs)),
  };
});
