import { afterAll, beforeAll } from "bun:test";
import { setWorkersOfWorlds } from "../../../../test/support/capacity-world.ts";

beforeAll(() => setWorkersOfWorlds(2));
afterAll(() => setWorkersOfWorlds(1));

await import("../../../admission/capacity/capacity.test.ts");
await import("../../../../test/property/capacity-pool.test.ts");
await import("../../../../test/property/capacity-queues.test.ts");
await import("../../../../test/property/capacity-shares.test.ts");
