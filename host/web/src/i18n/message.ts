// Messages as `tools/messages.mjs` compiles them.

/** Text, a value, or the choice of a plural form. `#` within a form is the number. */
export type Part = string | [name: string] | [name: string, format: 'plural', forms: Record<string, string | Message>];
export type Message = readonly Part[];

const known = new Map<string, { rules: Intl.PluralRules; numbers: Intl.NumberFormat }>();

function of(tag: string) {
  let found = known.get(tag);
  if (!found) known.set(tag, (found = { rules: new Intl.PluralRules(tag), numbers: new Intl.NumberFormat(tag) }));
  return found;
}

/** The text of a message. A plural has forms for exact numbers (`0`) and for the categories of the language. */
export function format(message: Message, values: Record<string, unknown>, tag: string): string {
  return message.map((part) => write(part, values, tag)).join('');
}

function write(part: Part, values: Record<string, unknown>, tag: string): string {
  if (typeof part === 'string') return part;
  const [name, , forms] = part;
  const value = values[name];
  if (!forms) return String(value ?? '');
  const count = Number(value);
  const { rules, numbers } = of(tag);
  const form = forms[count] ?? forms[rules.select(count)] ?? forms.other ?? '';
  const counted = (one: Part): Part => (typeof one === 'string' ? one.replaceAll('#', numbers.format(count)) : one);
  return format((typeof form === 'string' ? [form] : form).map(counted), values, tag);
}
