/** What the command line calls a field of the admin API. */
const optionNames: ReadonlyMap<string, string> = new Map([
  ["account_id", "--account"],
  ["action", "--action"],
  ["actor_id", "--actor"],
  ["allowed_models", "--models"],
  ["allowed_networks", "--networks"],
  ["application_id", "--application"],
  ["by", "--by"],
  ["class", "--class"],
  ["cursor", "--cursor"],
  ["email", "the email address"],
  ["environment", "--environment"],
  ["expires_at", "--expires"],
  ["expires_in_days", "--expires-in"],
  ["key_id", "--key"],
  ["limit", "--limit"],
  ["limits", "--requests-per-minute and --tokens-per-minute"],
  ["limits.requests_per_minute", "--requests-per-minute"],
  ["limits.tokens_per_minute", "--tokens-per-minute"],
  ["max_keys", "--max-keys"],
  ["model", "--model"],
  ["name", "the name"],
  ["note", "--note"],
  ["outcome", "--outcome"],
  ["overlap_seconds", "--overlap"],
  ["password", "the password"],
  ["plan", "--plan"],
  ["plans", "--plans"],
  ["provisioned_pool", "--provisioned-pool"],
  ["provisioned_units", "--provisioned-units"],
  ["role", "--role"],
  ["scopes", "--scopes"],
  ["since", "--since"],
  ["status", "--status"],
  ["step", "--step"],
  ["subject_id", "--subject"],
  ["target", "--target"],
  ["until", "--until"],
  ["user_id", "--user"],
]);

/** Says a message of the admin API in the words of the command line; `param` is the field at fault. */
export function inOptionNames(message: string, param: string | null): string {
  if (param === null) return message;
  const [, field = "", index] = /^([^[]*)(?:\[(\d+)\])?/.exec(param) ?? [];
  const option = optionNames.get(field);
  if (option === undefined) return message;
  const named = index === undefined ? option : `${option} (no. ${Number(index) + 1})`;
  return message.replaceAll(`'${param}'`, named).replaceAll("parameter: --", "option: --");
}
