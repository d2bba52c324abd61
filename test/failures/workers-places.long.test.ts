import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { createKeyOf } from "../support/process-key.ts";
import { startServing } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder } from "./outage-process.ts";

const places = 4;

/** An upstream that counts the requests that it has at once. */
function startUpstream() {
  let open = 0;
  let most = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      open += 1;
      most = Math.max(most, open);
      await Bun.sleep(20);
      open -= 1;
      const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
      const usage = { prompt_tokens: 1, total_tokens: 1 };
      return Response.json({ object: "list", model: "m", data, usage });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    get most() {
      return most;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

test("two workers never hold more places than there are, and serve while control is away", async () => {
  await using upstream = startUpstream();
  await using folder = makeProcessFolder({ workers: 2 });
  const { configPath } = folder;
  const own = `{ kind: openai, base_url: "${upstream.url}", max_in_flight: ${places} }`;
  const text = readFileSync(configPath, "utf8").replace(/( simulator: ).*/, `$1${own}`);
  writeFileSync(configPath, text);
  const key = await createKeyOf(configPath);
  await using serving = await startServing(["--config", configPath]);
  const rush = () => Promise.all(Array.from({ length: 30 }, () => callWith(serving, key)));
  const before = await rush();
  expect(before.filter((status) => status === 200).length).toBeGreaterThanOrEqual(places);
  const { controlPid } = serving;
  const during = rush();
  process.kill(controlPid, "SIGKILL");
  const alone = await during;
  expect(new Set([...alone, ...(await rush())]).isSubsetOf(new Set([200, 503]))).toBe(true);
  while (serving.controlPid === controlPid) await Bun.sleep(20);
  while ((await rush()).filter((status) => status === 200).length < places) await Bun.sleep(20);
  expect(upstream.most).toBe(places);
}, 60_000);
