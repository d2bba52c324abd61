import { afterAll, beforeAll } from "bun:test";
import {
  contractReservationTtlMs,
  limitStoreContract,
} from "../../../../../test/contracts/limit-store-contract.ts";
import { steered, steeredBy } from "../../../../../test/support/steered-valkey.ts";
import {
  connectTo,
  describeWithValkey,
  startValkey,
  type ValkeyServer,
} from "../../../../../test/support/valkey-server.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { limitScripts } from "./scripts.ts";
import { SharedLimits } from "./shared-limits.ts";

describeWithValkey(() => {
  let server: ValkeyServer;
  let connection: ValkeyConnection;
  beforeAll(async () => {
    server = await startValkey();
    connection = await connectTo(server, { scripts: limitScripts.map(steered) });
  });
  afterAll(async () => {
    connection.close();
    await server[Symbol.asyncDispose]();
  });

  for (const random of [0, 0.5, 1]) {
    limitStoreContract(`Valkey, jitter drawn as ${random}`, async (clock) => {
      await server.command("FLUSHALL");
      return new SharedLimits({
        connection: steeredBy(clock, connection),
        clock,
        random: () => random,
        reservationTtlMs: contractReservationTtlMs,
        scopeLimit: 1_000,
        workers: () => 1,
        onError(error) {
          throw error;
        },
      });
    });
  }
});
