import { invalidField } from "../../operation/field-error.ts";

export const passwordLengthMin = 12;
export const passwordLengthMax = 256;

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

/** Passwords of at least 12 characters from lists of the most common ones. */
const worst = wordsOf(
  "123456789012 1234567890123 1234567890abc 1q2w3e4r5t6y 1qaz2wsx3edc abcdefghijkl " +
    "administrator adminadminadmin changemechangeme changemeplease " +
    "correcthorsebatterystaple iloveyouforever letmeinletmein passwordpassword " +
    "password12345 password123456 qazwsxedcrfv qwerty123456 qwertyqwerty qwertyuiop[] " +
    "qwertyuiopasdf sluicesluice trustno1trustno1 welcomewelcome",
);

/** Common words, which stay weak with digits and signs at the end. */
const stems = wordsOf(
  "admin changeme iloveyou letmein operator password passw0rd p@ssw0rd p@ssword qwerty " +
    "qwertyuiop secret sluice welcome",
);

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

function isPredictable(plain: string): boolean {
  if (worst.has(plain) || stems.has(plain.replace(/[^a-z]+$/, ""))) return true;
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
