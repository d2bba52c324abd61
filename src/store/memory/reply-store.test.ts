import { replyStoreContract } from "../../../test/contracts/reply-store-contract.ts";
import { MemoryReplyStore } from "./reply-store.ts";

replyStoreContract("memory", () => {
  const erased = new Set<string>();
  return {
    store: new MemoryReplyStore((accountId) => erased.has(accountId)),
    erase: (accountId) => Promise.resolve(void erased.add(accountId)),
  };
});
