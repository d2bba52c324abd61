import { expect, test } from "bun:test";
import type { z } from "zod";
import { refusalsSchema } from "../../src/control/contract/refusals.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";

describeWithValkey(() => {
  describeWithPostgres((databases) => {
    test("any gateway explains what another one has refused", async () => {
      await using valkey = await startValkey();
      const sections = {
        storage: `{ url: "${await databases.server.createDatabase()}" }`,
        limits: `{ store: "${valkey.url}", timeout: 5s }`,
      };
      const limits = { requestsPerMinute: 1, tokensPerMinute: 100_000 };
      await using one = await startGateway({ sections, workers: 2, key: { limits } });
      await using other = await startGateway({ sections, key: { application: "other" } });
      expect((await call(one)).status).toBe(200);
      const { id, status } = await call(one);
      expect(status).toBe(429);
      const path = `/admin/v1/refusals/${id}`;
      while ((await other.admin("GET", path)).status !== 200) await Bun.sleep(20);
      const told = await Promise.all([one, other].map((each) => each.admin("GET", path)));
      const [here, there] = await Promise.all(told.map((each) => each.json()));
      expect(there).toEqual(here);
      expect(await listOf(other)).toEqual(await listOf(one));

      await valkey.kill();
      expect((await listOf(one)).map((refusal) => refusal.id)).toContain(id);
      expect((await other.admin("GET", path)).status).toBe(404);
      await valkey.start();
      // New ones are shared again.
      for (;;) {
        const next = await call(one);
        if (next.status !== 429) continue;
        await Bun.sleep(200);
        if ((await other.admin("GET", `/admin/v1/refusals/${next.id}`)).status === 200) break;
      }
    });
  });
});

async function call(gateway: TestGateway) {
  const response = await gateway.post("/v1/chat/completions", {
    model: "chat-model",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 5,
  });
  await response.text();
  return { status: response.status, id: response.headers.get("x-request-id") ?? "" };
}

async function listOf(gateway: TestGateway): Promise<z.infer<typeof refusalsSchema>["data"]> {
  const response = await gateway.admin("GET", "/admin/v1/refusals");
  return refusalsSchema.parse(await response.json()).data;
}
