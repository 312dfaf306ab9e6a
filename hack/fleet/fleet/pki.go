package fleet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writePKI makes the keys and certificates of a local cluster, all or none.
func writePKI(dir, name string) error {
	folder := filepath.Join(dir, pkiFolder)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ca, err := newAuthority(name)
	if err != nil {
		return err
	}
	serving, err := ca.server()
	if err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	accountsPEM, err := encodeKey(accounts)
	if err != nil {
		return err
	}
	return writeFolder(folder, map[string][]byte{
		caCert: ca.pem.cert, caKey: ca.pem.key,
		servingCert: serving.cert, servingKey: serving.key,
		accountsKey: accountsPEM,
	})
}

// writeFolder makes a folder that is there with all its files or not at all.
func writeFolder(folder string, files map[string][]byte) error {
	temporary := folder + ".tmp"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(temporary, name), content, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(temporary, folder)
}

// encodeKey writes the form that every version of kube-apiserver reads.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// parseKey reads our keys and those of kubeadm.
func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the CA's key cannot sign")
	}
	return signer, nil
}
