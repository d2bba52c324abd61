import { insertAccount } from "../../control/accounts/accounts.ts";
import { insertApplication } from "../../control/accounts/applications.ts";
import { changeOf } from "../../control/audit/audit-fields.ts";
import { bySystem, changeAs } from "../../control/operation/change.ts";
import { insertKey } from "../../control/keys/issue-key.ts";
import { insertUser, newUser } from "../../control/sign-in/keep-user.ts";
import { insertLink } from "../../control/sign-in/links.ts";
import { isLoopback } from "../../domain/network.ts";
import { keyStatus } from "../../control/keys/key-view.ts";
import type { AdminServices } from "../../control/services.ts";
import type { DemoAccess } from "../../process/messages.ts";
import type { CommandIo } from "../command.ts";
import type { SettingsArguments } from "./load-settings.ts";
import { commandLine } from "../program.ts";

export interface IntroducedDemo {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly control: { issueDemoAccess(): Promise<DemoAccess> };
}

/**
 * Prints a key on the first start, two ways to use it, and the addresses. Returns whether somebody
 * can sign in.
 */
export async function introduceDemo(
  { dataUrl, adminUrl, control }: IntroducedDemo,
  values: SettingsArguments,
  io: CommandIo,
): Promise<boolean> {
  const { key, link } = await control.issueDemoAccess();
  io.print("Sluice demo: every model is simulated, nothing leaves this machine.\n");
  if (key === undefined) io.print(explainMissingKey(values));
  else io.print(`  API key  ${key}   (shown only now)\n`);
  io.print(curlExample(dataUrl, key ?? "$SLUICE_KEY"));
  if (link !== undefined) io.print(`  Console  ${link}   (signs in once, within 10 minutes)`);
  io.print(`  API      ${dataUrl}/v1
  Admin    ${adminUrl}/admin/v1/docs
  Metrics  ${adminUrl}/metrics
`);
  io.print(sdkExample(dataUrl, key ?? "YOUR_KEY"));
  return link !== undefined;
}

/** `adminUrl`: of the admin listener. */
export async function issueDemoAccess(admin: AdminServices, adminUrl: string): Promise<DemoAccess> {
  return { key: await issueDemoKey(admin), link: await issueDemoLink(admin, adminUrl) };
}

/** Signs an operator in who exists only in the demo. */
async function issueDemoLink(admin: AdminServices, adminUrl: string): Promise<string | undefined> {
  // Otherwise, anybody who sees the terminal could take the demo over from elsewhere.
  if (!isLoopback(URL.parse(adminUrl)?.hostname ?? "")) return undefined;
  const email = "operator@demo.localhost";
  return changeAs(admin, bySystem, async (changing) => {
    const { items } = await changing.transaction.users.list({ email }, { limit: 1 });
    const facts = { email, name: "Demo operator", role: "operator" } as const;
    const user = items[0] ?? newUser(facts, changing.now, admin.random);
    if (items.length === 0) await insertUser(changing, user);
    if (user.disabledAt !== undefined) return undefined;
    const services = { random: admin.random, publicUrl: () => adminUrl };
    const link = { user, purpose: "sign-in", lifetimeMs: 600_000 } as const;
    return (await insertLink(changing, link, services)).url;
  });
}

/** Issues the key of the demo at the first start; its text is not available later. */
async function issueDemoKey(admin: AdminServices): Promise<string | undefined> {
  const environment = "local";
  const text = await changeAs(admin, bySystem, async (changing) => {
    const { transaction, now, audit } = changing;
    const { items: keys } = await transaction.keys.list({ environment }, { limit: 500 });
    // The key's own status decides: with a disabled application, a new key would not work either.
    if (keys.some((key) => keyStatus(key, now) === "active")) return undefined;
    const { items: accounts } = await transaction.accounts.list({ name: "Demo" }, { limit: 1 });
    const facts = { name: "Demo", plans: ["pilot", "standard"] };
    const { id: accountId } = accounts[0] ?? (await insertAccount(changing, facts, admin));
    const names = { accountId, environment, name: "demo" };
    const { items: known } = await transaction.applications.list(names, { limit: 1 });
    const application = known[0] ?? (await insertApplication(changing, names, admin));
    const wanted = { application, settings: { plan: "standard" }, now };
    const issued = await insertKey(transaction, wanted, admin);
    await audit(changeOf("key", "create", { after: issued.key }));
    return issued.text;
  });
  if (text !== undefined) await admin.onKeysChanged();
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
