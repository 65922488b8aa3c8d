//! Bends inputs, the same way for the same seed.

/// No input grows longer.
const LONGEST: usize = 6_000;

/// Octets at which readers turn.
const OCTETS: [u8; 24] = [
    0, 1, 0x0a, 0x0d, 0x20, 0x22, b'%', b'*', b'-', b'.', b'/', b':', b';', b'=', b'@', b'[', b'\\', b'_', b'{', 0x7f, 0x80,
    0xc0, 0xfe, 0xff,
];

/// Pieces of text at which readers turn.
const PIECES: [&str; 20] = [
    "xn--",
    "..",
    "://",
    "\r\n",
    "\u{202e}",
    "\u{ad}",
    "\u{3002}",
    "\u{ff45}",
    "ß",
    "\u{1f600}",
    "18446744073709551616",
    "-1",
    "null",
    "{}",
    "[[",
    "\"\"",
    "\\255",
    "\\",
    "e\u{301}",
    "0x",
];

/// A source of damage.
pub struct Mutator(u64);

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % n.max(1)
    }

    /// One of the pool, with a few changes.
    pub fn bend(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut out = pool[self.below(pool.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut out, pool);
        }
        out.truncate(LONGEST);
        out
    }

    fn change(&mut self, out: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.below(out.len() + 1);
        let end = at + self.below(out.len() + 1 - at);
        match self.below(9) {
            0 if at < out.len() => out[at] ^= 1 << self.below(8),
            1 if at < out.len() => out[at] = OCTETS[self.below(OCTETS.len())],
            2 => out.insert(at, OCTETS[self.below(OCTETS.len())]),
            3 => drop(out.splice(at..at, PIECES[self.below(PIECES.len())].bytes())),
            4 => drop(out.drain(at..end)),
            5 => {
                let again = out[at..end].to_vec();
                drop(out.splice(end..end, again));
            }
            6 => out.truncate(at),
            7 => {
                let other = &pool[self.below(pool.len())];
                let from = self.below(other.len() + 1);
                drop(out.splice(at..end, other[from..].iter().copied()));
            }
            _ => {
                let octet = u8::try_from(self.next() >> 56).unwrap();
                out.insert(at, octet);
            }
        }
    }
}
