import { invalidField } from "../../operation/refusals.ts";

const passwordLengthMin = 12;
const passwordLengthMax = 256;

/** Throws 400 that names the field. */
export function requireGoodPassword(password: string, email: string, param: string): void {
  const problem = passwordProblem(password, email);
  if (problem !== undefined) throw invalidField(param, problem);
}

/** Why a password is refused, as advice for its user; undefined: it is accepted. */
export function passwordProblem(password: string, email: string): string | undefined {
  const { length } = Array.from(password);
  if (length < passwordLengthMin || length > passwordLengthMax) {
    return `use ${passwordLengthMin} to ${passwordLengthMax} characters`;
  }
  const plain = password.toLowerCase();
  const address = email.toLowerCase();
  if (plain === address || plain === address.split("@", 1)[0]) {
    return "it must differ from the email address";
  }
  if (isPredictable(plain)) return "this is a common password";
  return undefined;
}

/** Words of the most common passwords, which stay weak with digits and signs at the end. */
const common: ReadonlySet<string> = new Set(
  (
    "1q2w3e4r5t6y 1qaz2wsx3edc admin administrator adminadminadmin changeme changemechangeme " +
    "changemeplease correcthorsebatterystaple iloveyou iloveyouforever letmein letmeinletmein " +
    "operator password passw0rd p@ssw0rd p@ssword passwordpassword qazwsxedcrfv qwerty " +
    "qwertyqwerty qwertyuiop qwertyuiopasdf secret sluice sluicesluice welcome welcomewelcome"
  ).split(" "),
);

function isPredictable(plain: string): boolean {
  if (common.has(plain) || common.has(plain.replace(/[^a-z]+$/, ""))) return true;
  return new Set(plain).size < 4 || isRun(plain);
}

/** Each character follows the one before it: `abcdef...`, `345678...`, `987654...`. */
function isRun(plain: string): boolean {
  const codes = Array.from(plain, (character) => character.codePointAt(0) ?? 0);
  const steps = new Set(codes.slice(1).map((code, index) => code - (codes[index] ?? 0)));
  // Nine is followed by zero.
  const isStep = (step: number): boolean => Math.abs(step) === 1 || Math.abs(step) === 9;
  return [...steps].every(isStep);
}
