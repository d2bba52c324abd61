import { issueKey } from "../admin/keys.ts";
import type { App } from "../app.ts";
import type { Key } from "../domain/key.ts";
import type { CommandIo } from "./command.ts";
import type { Settings, SettingsArguments } from "./load-settings.ts";
import { openStores } from "./open-stores.ts";

export interface DemoIntroduction {
  readonly app: App;
  readonly settings: Settings;
  readonly values: SettingsArguments;
}

/** Prints what a newcomer needs: addresses, a key on the first start, and two ways to use it. */
export async function introduceDemo(demo: DemoIntroduction, io: CommandIo): Promise<void> {
  const { app } = demo;
  const key = await issueFirstKey(demo);
  io.print(`Sluice demo: every model is simulated, nothing leaves this machine.

  API      ${app.dataUrl}/v1
  Metrics  ${app.adminUrl}/metrics
`);
  if (key === undefined) io.print(explainMissingKey(demo.values));
  else io.print(`  API key  ${key}   (shown only now)\n`);
  const shown = key ?? "YOUR_KEY";
  io.print(curlExample(app.dataUrl, shown));
  io.print(sdkExample(app.dataUrl, shown));
}

/** The key of the demo is made on the first start; later its text is known to nobody here. */
async function issueFirstKey({ app, settings }: DemoIntroduction): Promise<string | undefined> {
  const keys = await app.keys.list();
  const isUsable = ({ environment, revokedAt }: Key): boolean =>
    environment === "local" && revokedAt === undefined;
  if (keys.some(isUsable)) return undefined;
  using stores = openStores(settings.config);
  const wanted = {
    application: "demo",
    environment: "local",
    plan: "standard",
    limits: undefined,
  };
  const { text } = await issueKey(wanted, stores.keys);
  await app.reloadKeys();
  return text;
}

function explainMissingKey(values: SettingsArguments): string {
  const dataDir = values["data-dir"];
  const place = dataDir === undefined ? "" : ` --data-dir ${dataDir}`;
  return `  API key  the one printed at the first start. For another:
           npm run sluice -- keys create --application demo --plan standard${place}
`;
}

function curlExample(url: string, key: string): string {
  return `Try it with curl:

  curl -N ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '{"model":"alpha-sonnet-4","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'
`;
}

function sdkExample(url: string, key: string): string {
  return `or with the openai package (npm i openai; save as demo.mjs; node demo.mjs):

  import OpenAI from "openai";
  const client = new OpenAI({ baseURL: "${url}/v1", apiKey: "${key}" });
  const messages = [{ role: "user", content: "Hello!" }];
  const stream = await client.chat.completions.create({ model: "alpha-sonnet-4", messages, stream: true });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
`;
}
