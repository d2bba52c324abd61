import { afterAll, beforeAll } from "bun:test";
import { limitStoreContract } from "../../../../test/contracts/limit-store-contract.ts";
import {
  clientOf,
  emptied,
  limitsOver,
  steeredBy,
} from "../../../../test/support/valkey-limits.ts";
import {
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../test/support/valkey-server.ts";
import type { ValkeyClient } from "./client.ts";

describeWithValkey(() => {
  let server: ValkeyServer;
  let client: ValkeyClient;
  beforeAll(async () => {
    server = await startValkey();
    client = await clientOf(server);
  });
  afterAll(async () => {
    client.close();
    await server[Symbol.asyncDispose]();
  });

  for (const random of [0, 0.5, 1]) {
    limitStoreContract(`Valkey, jitter drawn as ${random}`, async (clock) => {
      await emptied(server);
      return limitsOver(steeredBy(clock, client), {
        clock,
        random: () => random,
      });
    });
  }
});
