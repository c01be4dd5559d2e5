// Pseudo-languages: English with accents, brackets and 40 % more length, to find text that is not translatable or does
// not fit.
const accents = {
  a: 'á', b: 'ƀ', c: 'ç', d: 'ð', e: 'é', f: 'ƒ', g: 'ĝ', h: 'ĥ', i: 'î', j: 'ĵ', k: 'ķ', l: 'ļ', m: 'ɱ', n: 'ñ', o: 'ö',
  p: 'þ', q: 'ʠ', r: 'ŕ', s: 'š', t: 'ţ', u: 'û', v: 'ṽ', w: 'ŵ', x: 'ẋ', y: 'ý', z: 'ž',
};

function words(text) {
  return text.replace(/[a-z]/gi, (letter) => {
    const accented = accents[letter.toLowerCase()] ?? letter;
    return letter === letter.toLowerCase() ? accented : accented.toUpperCase();
  });
}

function part(token) {
  if (typeof token === 'string') return words(token);
  const [name, format, options] = token;
  if (!options || typeof options !== 'object') return token;
  const changed = {};
  for (const [key, value] of Object.entries(options)) {
    changed[key] = key === 'offset' ? value : typeof value === 'string' ? words(value) : Array.isArray(value) ? value.map(part) : value;
  }
  return [name, format, changed];
}

function length(token) {
  return typeof token === 'string' ? token.length : 6;
}

export function pseudo(message) {
  const tokens = typeof message === 'string' ? [message] : message;
  const more = Math.ceil(tokens.reduce((sum, token) => sum + length(token), 0) * 0.4);
  return ['[', ...tokens.map(part), '~'.repeat(more), ']'];
}
