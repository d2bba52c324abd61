import { replyStoreContract } from "./reply-store-contract.ts";
import { MemoryReplyStore } from "../support/memory-reply-store.ts";

replyStoreContract("memory", () => {
  const erased = new Set<string>();
  return {
    store: new MemoryReplyStore((accountId) => erased.has(accountId)),
    erase: (accountId) => Promise.resolve(void erased.add(accountId)),
  };
});
