import { ensureApplication } from "../../control/accounts/applications.ts";
import { bySystem } from "../../control/operation/change.ts";
import { issueKey } from "../../control/keys/issue-key.ts";
import { keyStatus } from "../../control/keys/key-view.ts";
import type { AdminServices } from "../../control/services.ts";
import type { CommandIo } from "../command.ts";
import type { SettingsArguments } from "./load-settings.ts";
import { commandLine } from "../program.ts";

export interface IntroducedDemo {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly control: { issueDemoKey(): Promise<string | undefined> };
}

/** Prints a key on the first start, two ways to use it, and the addresses. */
export async function introduceDemo(
  { dataUrl, adminUrl, control }: IntroducedDemo,
  values: SettingsArguments,
  io: CommandIo,
): Promise<void> {
  const key = await control.issueDemoKey();
  io.print("Sluice demo: every model is simulated, nothing leaves this machine.\n");
  if (key === undefined) io.print(explainMissingKey(values));
  else io.print(`  API key  ${key}   (shown only now)\n`);
  io.print(curlExample(dataUrl, key ?? "$SLUICE_KEY"));
  io.print(`  API      ${dataUrl}/v1
  Admin    ${adminUrl}/admin/v1/docs
  Metrics  ${adminUrl}/metrics
`);
  io.print(sdkExample(dataUrl, key ?? "YOUR_KEY"));
}

/** Issues the key of the demo at the first start; its text is not available later. */
export async function issueDemoKey(admin: AdminServices): Promise<string | undefined> {
  const environment = "local";
  const { items } = await admin.store.read((view) =>
    view.keys.list({ environment }, { limit: 500 }),
  );
  // The key's own status decides: with a disabled application, a new key would not work either.
  if (items.some((key) => keyStatus(key, admin.clock.now()) === "active")) return undefined;
  const names = { account: "Demo", application: "demo", environment };
  const { id: applicationId } = await ensureApplication(admin, names);
  const { text } = await issueKey(admin, { applicationId, plan: "standard" }, bySystem.actor);
  await admin.onKeysChanged();
  return text;
}

function explainMissingKey(values: SettingsArguments): string {
  return `  API key  the one that the first start printed, here as SLUICE_KEY. For another:
           ${commandLine("keys create --application demo --plan standard", values)}
`;
}

function curlExample(url: string, key: string): string {
  return `Try it with curl:

  curl -N ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '{"model":"alpha-sonnet-4","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'
`;
}

function sdkExample(url: string, key: string): string {
  return `Or with the openai package (npm i openai; save as demo.mjs; node demo.mjs):

  import OpenAI from "openai";
  const client = new OpenAI({ baseURL: "${url}/v1", apiKey: "${key}" });
  const messages = [{ role: "user", content: "Hello!" }];
  const stream = await client.chat.completions.create({ model: "alpha-sonnet-4", messages, stream: true });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
`;
}
